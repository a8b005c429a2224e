"""Content types and Accept."""

from __future__ import annotations

import pytest

from forecastle import media
from forecastle.errors import NotAcceptable

JSON, CSV, NPY = "application/json", "text/csv", "application/x-npy"


@pytest.mark.parametrize(
    ("content_type", "type_", "params"),
    [
        ("", "application/octet-stream", {}),
        ("application/json", JSON, {}),
        ('Text/CSV; Charset="UTF-8"', CSV, {"charset": "UTF-8"}),
        ("text/csv;charset=utf-8 ; header=absent", CSV, {"charset": "utf-8", "header": "absent"}),
        ("nonsense", "nonsense", {}),
        ("; charset=utf-8", "application/octet-stream", {}),
    ],
)
def test_a_content_type_is_its_type_in_lower_case_and_its_parameters(
    content_type: str, type_: str, params: dict[str, str]
) -> None:
    assert media.parse(content_type) == media.MediaType(type_, params)


@pytest.mark.parametrize(
    ("content_type", "json"),
    [
        (JSON, True),
        ("application/json; charset=utf-8", True),
        ("text/json", True),
        ("application/vnd.api+json", True),
        ("application/jsonlines", False),
        ("text/csv", False),
        ("", False),
    ],
)
def test_json_is_known_by_its_type_or_its_suffix(content_type: str, json: bool) -> None:
    assert media.is_json(content_type) is json


@pytest.mark.parametrize(
    ("header", "offers", "chosen"),
    [
        ("", (JSON, CSV), JSON),
        ("*/*", (JSON, CSV), JSON),
        ("*", (JSON, CSV), JSON),
        ("*/*;q=0.1", (JSON, CSV), JSON),
        (JSON, (CSV, JSON), JSON),
        ("APPLICATION/JSON", (CSV, JSON), JSON),
        ("application/json; charset=utf-8", (JSON,), JSON),
        # quality decides
        ("application/json;q=0.4, text/csv;q=0.5", (JSON, CSV), CSV),
        ("text/csv;q=0.4, application/json", (CSV, JSON), JSON),
        # among equals, the order of the offers
        ("text/csv, application/json", (JSON, CSV), JSON),
        ("text/csv, application/json", (CSV, JSON), CSV),
        ("text/*, application/*", (CSV, JSON), CSV),
        # the most specific range gives an offer its quality, wherever it stands
        ("*/*, application/json;q=0.1", (JSON, CSV), CSV),
        ("text/*;q=0.9, text/csv;q=0.2, application/json;q=0.5", (JSON, CSV), JSON),
        ("*/*;q=0.9, text/*;q=0.1", (CSV, JSON), JSON),
        # 0 excludes
        ("application/json;q=0, */*", (JSON, CSV), CSV),
        ("text/*;q=0, */*;q=0.1", (CSV, JSON), JSON),
        # what browsers and old Java send
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", (JSON, CSV), JSON),
        ("text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", (JSON,), JSON),
        # an element that cannot be read is left out
        ("text/csv;q=x, application/json", (CSV, JSON), JSON),
        # an offer's own parameters
        ("text/plain", (JSON, "text/plain; charset=utf-8"), "text/plain; charset=utf-8"),
        ("text/plain; charset=latin-1, */*;q=0.1", ("text/plain; charset=utf-8",), "text/plain; charset=utf-8"),
        ("text/csv; header=present, text/csv;q=0.5", ("text/csv; header=present", CSV), "text/csv; header=present"),
        ("text/csv; header=present, */*;q=0.5", (CSV, JSON), CSV),
    ],
)
def test_the_clients_preference_decides_then_the_order_of_the_offers(
    header: str, offers: tuple[str, ...], chosen: str
) -> None:
    assert media.negotiate(media.accept(header), offers) == chosen


@pytest.mark.parametrize(
    "header",
    ["image/png", "image/*", "garbage", "*/*;q=0", "application/json;q=0, text/csv;q=0", "text/csv; header=present"],
)
def test_nothing_acceptable_is_refused_with_both_sides_named(header: str) -> None:
    with pytest.raises(NotAcceptable) as caught:
        media.negotiate(media.accept(header), (JSON, CSV))
    assert "application/json, text/csv" in caught.value.message
    assert header.partition(";")[0].partition(",")[0] in caught.value.message


def test_a_header_of_which_nothing_can_be_read_accepts_everything() -> None:
    assert media.negotiate(media.accept("application/json;q=2"), (NPY, JSON)) == NPY
