from __future__ import annotations

from functools import partial, reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecastle.cluster import desired
from forecastle.cluster.desired import INPUT_TYPES, MAX_SLO_MICROS, Application, Desired
from forecastle.cluster.specs import ModelSpec
from forecastle.cluster.store.documents import from_rows, to_rows
from forecastle.errors import ApplicationNotFound, BadInput, Conflict, ModelNotFound, RequestError

BAD_NAMES = ["", " ", "a b", "a/b", "../a", "a\nb", "a\x00", ".*", "-a", "é", "a" * 300, "a?b", "a%2fb"]


def application(name: str = "app", **more: object) -> Application:
    fields = {"input_type": "doubles", "default_output": "-1", "slo_micros": 20_000, **more}
    return Application(name, **fields)  # type: ignore[arg-type]


def model(name: str = "m", version: str = "1", **more: object) -> ModelSpec:
    return ModelSpec(name, "/m.py", version, **more)  # type: ignore[arg-type]


@pytest.fixture
def state() -> Desired:
    """An application that is linked to a model of two versions."""
    found = desired.register(Desired(), application())
    found = desired.add_model(found, model(version="1", input_type="doubles"))
    found = desired.add_model(found, model(version="2", input_type="doubles"), current=False)
    return desired.link(found, "app", ("m",))


@pytest.mark.parametrize("name", BAD_NAMES)
def test_an_application_of_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="cannot be an application's name") as caught:
        desired.register(Desired(), application(name))
    assert len(caught.value.message) < 400


@pytest.mark.parametrize("slo", [0, -1, MAX_SLO_MICROS + 1, 10**30])
def test_an_objective_that_is_none_is_refused_with_its_limits(slo: int) -> None:
    with pytest.raises(BadInput, match=rf"1 to {MAX_SLO_MICROS}"):
        desired.register(Desired(), application(slo_micros=slo))


@pytest.mark.parametrize("cache", [application(cache_bytes=-1), application(cache_seconds=-0.1)])
def test_a_cache_that_is_none_is_refused(cache: Application) -> None:
    with pytest.raises(BadInput, match="cache_"):
        desired.register(Desired(), cache)


@pytest.mark.parametrize(("type_", "aliases"), INPUT_TYPES.items())
def test_a_type_is_known_by_its_aliases(type_: str, aliases: tuple[str, ...]) -> None:
    for alias in (type_, *aliases):
        assert desired.register(Desired(), application(input_type=alias)).application("app").input_type == type_


@pytest.mark.parametrize("type_", ["", "bogus", "Doubles", "x" * 300])
def test_a_type_that_is_none_is_refused_with_those_there_are(type_: str) -> None:
    with pytest.raises(BadInput, match="integers, floats, doubles, bytes, strings, json"):
        desired.register(Desired(), application(input_type=type_))


@pytest.mark.parametrize("version", ["", "a b", "a/b", "a:b", "-1", "1" * 300, "1\n"])
def test_a_version_that_is_none_is_refused(version: str) -> None:
    with pytest.raises(BadInput, match="cannot be a version"):
        desired.add_model(Desired(), model(version=version))


@pytest.mark.parametrize("label", ["", "a,b", "a:b", "a\nb", "x" * 129])
def test_a_label_that_is_none_is_refused(label: str) -> None:
    with pytest.raises(BadInput, match="label"):
        desired.add_model(Desired(), model(labels=(label,)))


def test_what_is_there_is_not_registered_again(state: Desired) -> None:
    with pytest.raises(Conflict, match="'app' is registered already"):
        desired.register(state, application())
    with pytest.raises(Conflict, match="version '1' of the model 'm'"):
        desired.add_model(state, model())
    with pytest.raises(Conflict, match="linked to the model 'm' already"):
        desired.link(state, "app", ("m",))


def test_what_is_not_there_is_told(state: Desired) -> None:
    for change in (
        partial(desired.unregister, name="x"),
        partial(desired.link, name="x", models=("m",)),
        partial(desired.unlink, name="x", models=("m",)),
    ):
        with pytest.raises(ApplicationNotFound, match="'x'"):
            change(state)
    for missing in (
        partial(desired.link, name="app", models=("x",)),
        partial(desired.unlink, name="app", models=("x",)),
        partial(desired.use_version, name="m", version="9"),
        partial(desired.remove_model, name="m", version="9"),
        partial(desired.scale, name="m", version="9", replicas=1),
        partial(desired.use_version, name="x", version="1"),
    ):
        with pytest.raises(ModelNotFound):
            missing(state)


def test_a_model_of_another_type_is_not_linked_nor_takes_the_place_of_one(state: Desired) -> None:
    other = desired.add_model(state, model("n", input_type="strings"))
    with pytest.raises(Conflict, match=r"'n' version '1' takes strings, the application 'app' takes doubles"):
        desired.link(other, "app", ("n",))
    with pytest.raises(Conflict):
        desired.add_model(state, model(version="3", input_type="strings"))
    kept = desired.add_model(state, model(version="3", input_type="strings"), current=False)
    with pytest.raises(Conflict):
        desired.use_version(kept, "m", "3")
    assert kept.current == {"m": "1"}


def test_a_model_that_takes_anything_and_one_of_the_run_may_be_linked(state: Desired) -> None:
    found = desired.add_model(state, model("any"))
    assert desired.link(found, "app", ("any",)).application("app").models == ("m", "any")
    assert desired.link(state, "app", ("run",), {"run"}).application("app").models == ("m", "run")


def test_links_outlive_the_versions_and_the_model(state: Desired) -> None:
    left = desired.remove_model(state, "m", "1")
    assert left.current == {"m": "2"}
    left = desired.remove_model(left, "m", "2")
    assert (left.models, left.current) == ({}, {})
    assert left.application("app").models == ("m",)
    assert desired.unlink(left, "app", ("m",)).application("app").models == ()


@pytest.mark.parametrize("replicas", [-1, 1001])
def test_a_number_of_replicas_that_is_none_is_refused(state: Desired, replicas: int) -> None:
    with pytest.raises(BadInput, match="0 to 1000"):
        desired.scale(state, "m", "1", replicas)


STEPS = [
    *(partial(desired.register, application=application(name)) for name in "ab"),
    *(partial(desired.unregister, name=name) for name in "ab"),
    *(
        partial(desired.add_model, spec=model(name, version, input_type=type_), current=current)
        for name in "mn"
        for version in "12"
        for type_ in ("", "strings")
        for current in (True, False)
    ),
    *(partial(change, name=name, version=v) for change in (desired.use_version, desired.remove_model)
      for name in "mn" for v in "12"),
    *(partial(change, name=a, models=(m,)) for change in (desired.link, desired.unlink) for a in "ab" for m in "mn"),
    *(partial(desired.scale, name=name, version="1", replicas=3) for name in "mn"),
]  # fmt: skip


@given(st.lists(st.sampled_from(STEPS), max_size=25))
def test_after_any_changes_the_state_is_whole_and_a_store_gives_it_back(steps: list[partial[Desired]]) -> None:
    def step(state: Desired, change: partial[Desired]) -> Desired:
        before = to_rows(state)
        try:
            after = change(state)
        except RequestError:
            after = state
        assert to_rows(state) == before  # a change leaves the value that it began with as it was
        return after

    state = reduce(step, steps, Desired())
    assert state.current.keys() == state.models.keys()
    for name, version in state.current.items():
        current = state.models[name][version]
        for each in state.applications.values():
            if name in each.models:
                assert current.input_type in {"", each.input_type}
    assert from_rows(to_rows(state)) == state
