"""The half of the shipping forecast that knows the weather and nothing of JSON."""

from __future__ import annotations

from collections.abc import Callable

import inference_server

Forecast = dict[str, str]


@inference_server.plugin_hook
def model_fn(model_dir: str) -> Callable[[str], Forecast]:
    return _predict_weather


@inference_server.plugin_hook
def predict_fn(data: str, model: Callable[[str], Forecast]) -> Forecast:
    return model(data)


def _predict_weather(location: str) -> Forecast:
    return {
        "wind": "Southwesterly gale force 8 continuing",
        "sea_state": "Rough or very rough, occasionally moderate in southeast.",
        "weather": "Thundery showers.",
        "visibility": "Good, occasionally poor.",
    }
