from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecastle.runtimes.mxnet.attributes import Attributes, Unsupported, format_attribute


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("(3, 3)", (3, 3)),
        ("[3,3]", (3, 3)),
        ("(3L, 3L)", (3, 3)),
        ("(3,)", (3,)),
        ("3", (3,)),
        ("(-1, 0)", (-1, 0)),
        ("()", ()),
        ("None", ()),
    ],
)
def test_lists_are_read_as_every_version_wrote_them(text: str, numbers: tuple[int, ...]) -> None:
    assert Attributes({"kernel": text}).integers("kernel") == numbers


def test_a_list_may_leave_ends_open() -> None:
    assert Attributes({"begin": "(0, None, 2)"}).optional_integers("begin") == (0, None, 2)


@pytest.mark.parametrize(("text", "value"), [("True", True), ("1", True), ("False", False), ("0", False)])
def test_flags_are_words_or_digits(text: str, value: bool) -> None:
    assert Attributes({"no_bias": text}).flag("no_bias") is value


def test_what_is_not_set_is_the_default() -> None:
    attributes = Attributes({})
    assert attributes.integer("num_group", 1) == 1
    assert attributes.number("eps", 1e-3) == 1e-3
    assert attributes.integers("stride", (1, 1)) == (1, 1)
    assert attributes.flag("fix_gamma", default=True)


@pytest.mark.parametrize("reader", ["integer", "number", "flag", "integers", "optional_integers"])
@pytest.mark.parametrize("text", ["abc", "((1, 2), 3)", "(1, x)", "__import__('os')"])
def test_a_value_of_another_form_is_named(reader: str, text: str) -> None:
    with pytest.raises(ValueError, match="the attribute 'a' is"):
        getattr(Attributes({"a": text}), reader)("a")


def test_an_attribute_without_default_must_be_there() -> None:
    with pytest.raises(ValueError, match="'num_hidden' is missing"):
        Attributes({}).integer("num_hidden")


def test_an_attribute_that_nobody_reads_is_refused_unless_it_is_harmless() -> None:
    attributes = Attributes({"kernel": "(1,)", "workspace": "512", "__lr_mult__": "0", "offset": "3"})
    attributes.integers("kernel")
    with pytest.raises(Unsupported, match="offset=3"):
        attributes.refuse_unread()


@given(st.lists(st.integers(-(2**31), 2**31), min_size=1).map(tuple))
def test_what_is_written_is_read(numbers: tuple[int, ...]) -> None:
    assert Attributes({"a": format_attribute(numbers)}).integers("a") == numbers
