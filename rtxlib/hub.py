"""The Hugging Face Hub: whether it answers, the commit of a repo, and the error if a repo cannot be read."""

from __future__ import annotations

from functools import cache

from rtxlib.errors import InputError, disk_full


@cache
def revision(repo: str, kind: str = "dataset") -> str | None:
    """The latest commit of a repo on the Hub; None if the Hub does not answer. The Hub is asked once per process and repo.

    Raises InputError if the Hub answers that it has no such repo or does not allow to read it.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        return HfApi().repo_info(repo, repo_type=kind, timeout=10).sha
    except RepositoryNotFoundError as error:
        raise InputError(f"The Hub (HF_ENDPOINT) has no {kind} {repo}, or does not let you read it.") from error
    except Exception:  # refused, timed out, unknown host, offline mode, a proxy's error page: the Hub is out of reach
        return None


def unreachable(repo: str, error: Exception, instead: str) -> InputError:
    """The InputError for a repo that neither the Hub nor the cache has; ``instead`` says what else the user can do."""
    if disk_full(error):
        return InputError(f"The disk is full; {repo} could not be stored. Make room, or set HF_HOME to another disk.")
    return InputError(
        f"{repo} could be read neither from the Hub nor from its cache here ({type(error).__name__}): set HF_ENDPOINT "
        "to a Hub or mirror within reach, or HF_HOME to a cache that holds it (with HF_HUB_OFFLINE=1 where there is no "
        f"network), or {instead}."
    )
