"""The Hugging Face Hub: whether it answers, the commit of a repo, and the error if a file cannot be read or arrived changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from rtxlib import checksums
from rtxlib.errors import InputError, disk_full, few

SECONDS = 10  # that the Hub may take for an answer


def revision(repo: str, kind: str = "dataset") -> str | None:
    """The latest commit of a repo on the Hub; None if the Hub does not answer. The Hub is asked once per process and repo.

    Raises InputError if the Hub answers that it has no such repo or does not allow to read it.
    """
    answer = _answer(repo, kind)
    return answer and answer.sha


@cache
def _answer(repo: str, kind: str) -> Any:
    """What the Hub says of a repo, with the checksums of its files; None if it does not answer or hands out no files."""
    from huggingface_hub import HfApi, get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

    try:
        answer = HfApi().repo_info(repo, repo_type=kind, timeout=SECONDS, files_metadata=True)
    except RepositoryNotFoundError as error:
        raise InputError(f"The Hub (HF_ENDPOINT) has no {kind} {repo}, or does not let you read it.") from error
    except Exception:  # refused, timed out, unknown host, offline mode, a proxy's error page: the Hub is out of reach
        return None
    try:  # the largest file at once: the Hub's library would ask again and again for each
        if answer.siblings:
            largest = max(answer.siblings, key=lambda file: file.size or 0)
            get_hf_file_metadata(hf_hub_url(repo, largest.rfilename, repo_type=kind), timeout=SECONDS)
    except HfHubHTTPError as error:
        if error.response.status_code >= 500:
            return None
    except Exception:  # of this file; the download tells more
        pass
    return answer


def require_intact(repo: str, kind: str = "dataset", damaged: Callable[[], object] = lambda: None, only: str = "") -> None:
    """Compare the files of a repo that are in the cache with the checksums that the Hub names, if it names any.

    Raises InputError for files that were changed on their way. They are removed from the cache, so that the same command fetches
    them again. damaged: what else is then to be done. only: the one file that is compared; "": all.
    """
    from huggingface_hub import try_to_load_from_cache

    answer, changed = _answer(repo, kind), []
    for file in filter(lambda file: only in ("", file.rfilename), (answer and answer.siblings) or ()):
        cached = try_to_load_from_cache(repo, file.rfilename, repo_type=kind, revision=answer.sha)
        if isinstance(cached, str) and not _intact(Path(cached), file.blob_id, file.lfs and file.lfs.sha256):
            changed.append(file.rfilename)
            for path in (Path(cached).resolve(), Path(cached)):
                path.unlink(missing_ok=True)
    if changed:
        damaged()
        raise InputError(
            f"{few(changed)} of {repo} came from the Hub with another checksum than it names, so it was changed on its way; it "
            "is removed from the cache, and the same command fetches it again."
        )


def _intact(path: Path, blob: str | None, sha256: str | None) -> bool:
    """Whether a file has its SHA-256, which the Hub names of large files, or else git's name of its content, a SHA-1."""
    if sha256:
        return checksums.sha256(path) == sha256
    if blob:
        content = path.read_bytes()
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() == blob
    return True


def unreachable(repo: str, error: Exception, instead: str) -> InputError:
    """The InputError for a repo that neither the Hub nor the cache has; ``instead`` says what else the user can do."""
    if disk_full(error):
        return InputError(f"The disk is full; {repo} could not be stored. Make room, or set HF_HOME to another disk.")
    return InputError(
        f"{repo} could be read neither from the Hub nor from its cache here ({type(error).__name__}): set HF_ENDPOINT "
        "to a Hub or mirror within reach, or HF_HOME to a cache that holds it (with HF_HUB_OFFLINE=1 where there is no "
        f"network), or {instead}."
    )
