from __future__ import annotations

import pytest

from forecastle.cli import main


def test_the_version_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code in {0, None}
    assert capfd.readouterr().out == "forecastle 0.1.0\n"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["serve", "--help"]])
def test_help_shows_examples(capfd: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code in {0, None}
    assert "forecastle serve shipping=shipping.py" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["serv"], 'Unknown command "serv". Did you mean "serve"?'),
        (["serve", "a=b", "--prt", "1"], "Unknown option: --prt. Did you mean --port?"),
        (["serve", "a=b", "--port"], "--port requires an argument"),
        (["serve", "a=b", "--port", "x"], "--port: 'x' is not a port"),
        (["serve", "a=b", "--port", "1", "--port", "2"], "--port specified multiple times"),
        (["serve", "a/b=c"], "'a/b' cannot be a model's name"),
        (["serve", "-c", "gone.toml"], "gone.toml does not exist"),
        (["serve", "a=b", "--port", "8081"], "port and management_port are both 8081"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_on_stderr_and_exit_code_2(
    capfd: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("forecastle: ")
    assert sentence in err
    assert err.count("\n") == 1
