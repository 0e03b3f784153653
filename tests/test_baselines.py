"""NB-SVM and the bag of embeddings: the formula of the one, what both can tell, and that they repeat."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer

from rtx.baselines import classical, counting_words, embedding_bag, nb_svm
from rtx.baselines.classical import Fit, Labelled, record
from rtx.baselines.counting_words import FITS, NAME
from rtxlib.errors import InputError

GOOD, BAD = ["a fine film", "really good", "good food and fine service"], ["a dull film", "not good", "bad food"]
NEW = [nb_svm.fit, embedding_bag.fit]


@pytest.fixture(autouse=True)
def small_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_bag, "BUCKETS", 512)


def fitted(fit: Fit, texts: list, labels: list, names: list[str], unseen: tuple[list, list] | None = None) -> dict:
    train = Labelled(texts, np.array(labels))
    validation = train if unseen is None else Labelled(unseen[0], np.array(unseen[1]))
    return record("m", fit, train, validation, train, names)


def test_the_log_count_ratio_is_that_of_the_paper() -> None:
    counts = csr_matrix([[1, 0, 1], [1, 0, 0], [0, 1, 1]])
    p, q = np.array([3, 1, 2]) / 6, np.array([1, 2, 2]) / 5  # the first two rows, and the third, with 1 added
    np.testing.assert_allclose(nb_svm.log_ratio(counts, np.array([True, True, False])), np.log(p / q))


@pytest.mark.parametrize("fit", NEW)
def test_word_pairs_are_read(fit: Fit) -> None:
    """ "not good" is bad although "good" is good."""
    found = fitted(fit, (GOOD + BAD) * 30, ([1] * 3 + [0] * 3) * 30, ["negative", "positive"])
    assert found["accuracy"] == found["validation_accuracy"] == 1


@pytest.mark.parametrize("fit", NEW)
def test_three_classes_are_told_and_a_class_without_training_rows_is_never_given(fit: Fit) -> None:
    found = fitted(fit, ["red", "green", "blue"] * 30, [0, 2, 3] * 30, ["r", "unseen", "g", "b"])
    assert found["predictions"].tolist() == [0, 2, 3] * 30


@pytest.mark.parametrize("fit", NEW)
def test_a_word_of_the_first_text_is_another_term_than_that_of_the_second(fit: Fit) -> None:
    texts = [("hot", "cold"), ("cold", "hot"), ("hot", "hot"), ("cold", "cold")]
    found = fitted(fit, texts * 30, [1, 0, 1, 0] * 30, ["no", "yes"])  # the first text alone decides
    assert found["accuracy"] == 1


@pytest.mark.parametrize("fit", NEW)
def test_a_classifier_repeats_and_leaves_the_random_numbers_of_others_alone(fit: Fit) -> None:
    state = torch.get_rng_state()
    one, two = (fitted(fit, GOOD + BAD, [1, 0, 1, 0, 0, 1], ["no", "yes"]) for _ in range(2))
    assert one["predictions"].tolist() == two["predictions"].tolist()
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(("fit", "settings"), [(nb_svm.fit, {"C", "beta"}), (embedding_bag.fit, {"learning_rate", "epochs"})])
def test_settings_are_chosen_by_the_validation_rows(fit: Fit, settings: set[str]) -> None:
    """The first settings stay where no others are better on the validation rows, whatever the test rows say."""
    texts, labels = (GOOD + BAD) * 4, ([1] * 3 + [0] * 3) * 4
    found = fitted(fit, texts, labels, ["no", "yes"], (["unheard of"] * 2, [0, 1]))
    assert found["validation_accuracy"] == 0.5  # an unknown text gets one label at every setting
    first = {
        "C": nb_svm.STRENGTHS[0],
        "beta": nb_svm.INTERPOLATIONS[0],
        "epochs": embedding_bag.TRIALS[0][0],
        "learning_rate": embedding_bag.TRIALS[0][1],
    }
    assert {name: found[name] for name in settings} == {name: first[name] for name in settings}


def test_nb_svm_finds_a_rare_label() -> None:
    """The paper's β, for labels of equal frequency, finds few of these rows."""
    rng = np.random.default_rng(0)
    labels = [int(n % 8 == 0) for n in range(400)]
    texts = [" ".join([f"w{word}" for word in rng.integers(0, 300, 10)] + [f"spam{rng.integers(6)}"] * label) for label in labels]
    found = fitted(nb_svm.fit, texts, labels, ["ham", "spam"])
    assert found["recall"] > 0.9, found


def test_each_sign_of_a_script_without_spaces_is_a_word() -> None:
    terms = classical.Terms(lambda: CountVectorizer(**classical.WORDS), ["好电影 fine", "坏电影"])
    assert {"好", "电", "好 电", "影 fine", "fine"} <= set(terms.vectorisers[0].vocabulary_)


def test_a_bag_is_a_mean() -> None:
    """A text and the same text twice have the same logits."""
    bag = embedding_bag._Bag(torch.randn(4, 3), 2)
    torch.nn.init.normal_(bag.classes)
    once, twice = csr_matrix([[0.5, 0.5, 0.0, 0.0]]), csr_matrix([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    torch.testing.assert_close(bag(once)[0], bag(twice).mean(dim=0))


def test_a_regression_that_does_not_fit_into_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting_words, "WEIGHT_BYTES", 1 << 50)
    with pytest.raises(InputError, match="Counting words takes about"):
        counting_words.tf_idf(*[Labelled(GOOD + BAD, np.array([1, 1, 1, 0, 0, 0]))] * 2, 2)


def test_every_accuracy_table_has_all_baselines() -> None:
    assert list(FITS) == [NAME, "nb-svm", "bag of embeddings"]
