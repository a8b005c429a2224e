"""What Clipper's own tests assert of its REST APIs, by its real client; run in an environment that has that client.

    python scenarios.py QUERY_ADDRESS ADMIN_ADDRESS FOLDER

Prints, as JSON, what came of each scenario: "ok", or a traceback.
"""

import json
import pathlib
import sys
import time
import traceback

import requests
from clipper_admin import ClipperConnection, ClipperException
from clipper_admin.container_manager import ContainerManager

FOLDER = pathlib.Path(sys.argv[3])


class Running(ContainerManager):
    """A cluster that runs already; a model's image is its source, so that there is no container to start."""

    cluster_identifier = "tests"

    def connect(self):
        pass

    def deploy_model(self, name, version, input_type, image, num_replicas=1):
        pass

    def get_query_addr(self):
        return sys.argv[1]

    def get_admin_addr(self):
        return sys.argv[2]


connection = ClipperConnection(Running())
connection.connect()


def source(name, text):
    path = FOLDER / (name + ".py")
    path.write_text(text)
    return str(path)


def ask(application, **body):
    reply = requests.post(f"http://{sys.argv[1]}/{application}/predict", data=json.dumps(body), timeout=30)
    return reply.status_code, reply.json()


def raises(text, call, *args, **more):
    try:
        call(*args, **more)
    except ClipperException as error:
        found = str(error)
    else:
        raise AssertionError("no ClipperException")
    assert text in found, found


def register_model():
    connection.register_model("m1", "v1", "integers")
    connection.register_model("m1", "v2", "integers")
    assert connection.get_model_info("m1", "v1") is not None
    assert connection.get_model_info("m1", "v2") is not None
    assert connection.get_model_info("m1", "v3") is None
    raises("400", connection.register_model, "m1", "v2", "integers")


def register_application():
    connection.register_application("app2", "doubles", "DEFAULT", 3000000)
    assert "app2" in connection.get_all_apps()
    raises("400", connection.register_application, "app2", "doubles", "DEFAULT", 3000000)
    raises("400", connection.register_application, "app2b", "bogus", "DEFAULT", 3000000)


def link_to_unregistered_model():
    connection.register_application("app3", "integers", "DEFAULT", 3000000)
    raises("No model with name", connection.link_model_to_app, "app3", "no-such-model")


def unregister_application():
    before = len(connection.get_all_apps())
    connection.register_application("app4", "integers", "DEFAULT", 3000000)
    assert ask("app4", input=[1])[0] == 200
    connection.unregister_application("app4")
    assert len(connection.get_all_apps()) == before
    assert requests.post(f"http://{sys.argv[1]}/app4/predict", data="{}", timeout=5).status_code == 404
    raises("400", connection.unregister_application, "app4")


def linked_models():
    connection.register_application("app5", "integers", "DEFAULT", 3000000)
    assert connection.get_linked_models("app5") == []
    connection.register_model("m5", "v1", "integers")
    connection.link_model_to_app("app5", "m5")
    assert connection.get_linked_models("app5") == ["m5"]
    raises("400", connection.link_model_to_app, "app5", "m5")
    connection.unlink_model_from_app("app5", "m5")
    assert connection.get_linked_models("app5") == []
    raises("400", connection.unlink_model_from_app, "app5", "m5")
    connection.register_model("m5b", "v1", "strings")
    raises("400", connection.link_model_to_app, "app5", "m5b")
    raises("400", connection.get_linked_models, "no-such-app")


def application_info():
    connection.register_application("app6", "ints", "DEFAULT", 100000)
    info = connection.get_app_info("app6")
    assert info["name"] == "app6"
    assert info["input_type"] == "integers"
    assert info["default_output"] == "DEFAULT"
    assert info["latency_slo_micros"] == 100000
    assert info["linked_models"] == []
    assert connection.get_app_info("no-such-app") is None
    assert any(each["name"] == "app6" for each in connection.get_all_apps(verbose=True))


def containerless_model():
    connection.register_model("m7", "v1", "doubles")
    raises("containerless model", connection.set_num_replicas, "m7", 5)


def model_versions():
    connection.register_model("m8", "v1", "doubles", labels=["a", "b"])
    connection.register_model("m8", "v2", "doubles")
    assert connection.get_current_model_version("m8") == "v2"
    connection.set_model_version("m8", "v1")
    assert connection.get_current_model_version("m8") == "v1"
    assert connection.get_model_info("m8", "v1")["is_current_version"] is True
    assert connection.get_model_info("m8", "v1")["labels"] == ["a", "b"]
    assert "m8:v1" in connection.get_all_models()
    raises("400", connection.set_model_version, "m8", "v3")


def metrics():
    found = connection.inspect_instance()
    assert found
    assert {"counters", "ratio_counters", "meters", "histograms"} <= set(found)


def explicit_version():
    connection.register_application("app17", "integers", "DEFAULT", 30000000)
    one = source("one", "def predict_fn(data, model): return 1\n")
    two = source("two", "def predict_fn(data, model): return 2\n")
    connection.deploy_model("m17", "v1", "integers", one)
    connection.link_model_to_app("app17", "m17")
    connection.deploy_model("m17", "v2", "integers", two)
    assert ask("app17", input=[1, 2], version="v1")[1]["output"] == 1
    assert ask("app17", input=[1, 2])[1]["output"] == 2
    status, body = ask("app17", input=[1, 2], version="bogus")
    assert status == 400
    assert body["cause"] == "Requested version: bogus does not exist for model: m17"
    replicas = connection.get_all_model_replicas(verbose=True)
    assert {each["model_version"] for each in replicas if each["model_name"] == "m17"} == {"v1", "v2"}
    assert connection.get_model_replica_info("m17", "v1", 0)["model_id"] == "m17:v1"
    assert connection.get_model_replica_info("m17", "v1", 7) is None


def unlinked_application():
    connection.register_application("app19", "integers", "DEFAULT", 3000000)
    status, body = ask("app19", input=[1, 2])
    assert status == 200
    assert body["output"] == "DEFAULT"
    assert body["default"] is True
    assert body["default_explanation"] == "No connected models found for query"


def linked_application():
    connection.register_application("app20", "integers", "DEFAULT", 30000000)
    connection.deploy_model("m20", "1", "integers", source("noop", "def predict_fn(data, model): return 'x'\n"))
    connection.link_model_to_app("app20", "m20")
    status, body = ask("app20", input=[1, 2])
    assert status == 200
    assert body["default"] is False
    assert isinstance(body["query_id"], int)
    reply = requests.post(f"http://{sys.argv[1]}/app20/predict/", data=json.dumps({"input": [1]}), timeout=30)
    assert reply.json()["default"] is False


def batch():
    connection.register_application("app21", "doubles", "DEFAULT", 30000000)
    length = "def predict_fn(data, model): return len(data)\n"
    connection.deploy_model("m21", "1", "doubles", source("length", length))
    connection.link_model_to_app("app21", "m21")
    batch_ = [[0.0] * n for n in (1, 2, 3, 4)]
    body = ask("app21", input_batch=batch_)[1]
    assert [each["output"] for each in body["batch_predictions"]] == [1, 2, 3, 4]
    assert ask("app21", input_batch=[[1, 2]])[1]["output"] == 2
    assert ask("app21", input_batch=[])[1] == {"batch_predictions": []}


def strings():
    connection.register_application("app22", "strings", "DEFAULT", 30000000)
    text = "def predict_fn(data, model): return str(len(data))\n"
    connection.deploy_model("m22", "1", "strings", source("strings", text))
    connection.link_model_to_app("app22", "m22")
    assert int(ask("app22", input="abc")[1]["output"]) == 3


def fixed_batch_size():
    connection.register_application("app23", "integers", "DEFAULT", 30000000)
    slow = (
        "import time\ndef predict_batch_fn(batch, model):\n    time.sleep(0.05)\n    return [len(batch)] * len(batch)\n"
    )
    connection.deploy_model("m23", "1", "integers", source("slow", slow), batch_size=9)
    connection.link_model_to_app("app23", "m23")
    outputs = [each["output"] for each in ask("app23", input_batch=[[i] for i in range(450)])[1]["batch_predictions"]]
    assert max(outputs) == 9
    assert outputs.count(9) >= 0.7 * 450


def unloadable_model():
    began = time.time()
    bad = source("bad", "raise RuntimeError('no weights')\n")
    raises("no weights", connection.deploy_model, "m25", "1", "integers", bad)
    assert time.time() - began < 30
    assert connection.get_model_info("m25", "1") is None


def main():
    scenarios = [
        register_model, register_application, link_to_unregistered_model, unregister_application, linked_models,
        application_info, containerless_model, model_versions, metrics, explicit_version, unlinked_application,
        linked_application, batch, strings, fixed_batch_size, unloadable_model,
    ]  # fmt: skip
    results = {}
    for scenario in scenarios:
        try:
            scenario()
            results[scenario.__name__] = "ok"
        except Exception:
            results[scenario.__name__] = traceback.format_exc()
    json.dump(results, sys.stdout)


main()
