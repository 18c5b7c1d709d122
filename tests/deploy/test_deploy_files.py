"""The files of deploy/ parse, agree with each other, and name metrics and options that exist."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from completion.host.metrics import HostMetrics
from completion.request import Statistics

DEPLOY = Path(__file__).parents[2] / "deploy"
RECORDED = Path(__file__).parent
METRIC = re.compile(r"\b(?:vllm:|draftline_)\w+")


def documents(name):
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def of_kind(kind):
    files = yaml.safe_load((DEPLOY / "kubernetes/kustomization.yaml").read_text())["resources"]
    return [one for file in files for one in documents(f"kubernetes/{file}") if one["kind"] == kind]


def host_metrics():
    metrics = HostMetrics()
    metrics.count_completion(Statistics(accepted_by_drafter={"ngram": 1}), queue_s=0.1, total_s=0.2)
    return metrics.exposition().decode()


def names(exposition):
    """The names of series, and of the families of those that have none yet."""
    declared = re.findall(r"^# TYPE (\S+) (\w+)", exposition, re.MULTILINE)
    found = {name for name, _ in declared} | {name + "_total" for name, kind in declared if kind == "counter"}
    histograms = [name for name, kind in declared if kind == "histogram"]
    return found | {name + end for name in histograms for end in ("_bucket", "_count", "_sum")}


@pytest.fixture(scope="module")
def known():
    return names(host_metrics()) | names((RECORDED / "vllm_metrics.txt").read_text())


def test_every_file_is_part_of_a_deployment():
    listed = yaml.safe_load((DEPLOY / "kubernetes/kustomization.yaml").read_text())["resources"]
    assert {path.name for path in (DEPLOY / "kubernetes").iterdir()} == {*listed, "kustomization.yaml"}
    mounted = re.findall(r"\./monitoring/(\S+?):", (DEPLOY / "compose.yaml").read_text())
    assert {path.name for path in (DEPLOY / "monitoring").iterdir()} == set(mounted)


def test_the_dashboard_shows_metrics_that_exist(known):
    dashboard = json.loads((DEPLOY / "monitoring/dashboard.json").read_text())
    sources = documents("monitoring/grafana-datasource.yaml")[0]["datasources"]
    used = set()
    for panel in dashboard["panels"]:
        assert panel["datasource"]["uid"] in {source["uid"] for source in sources}
        for target in panel["targets"]:
            assert METRIC.findall(target["expr"]), target
            used |= set(METRIC.findall(target["expr"]))
    assert used <= known
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_autoscaling_asks_for_metrics_that_exist_and_scales_the_deployment(known):
    [scaled], [deployment] = of_kind("ScaledObject"), of_kind("Deployment")
    assert scaled["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    for trigger in scaled["spec"]["triggers"]:
        used = METRIC.findall(trigger["metadata"]["query"])
        assert used
        assert set(used) <= known
    assert "replicas" not in deployment["spec"]  # applying the file again would undo the scaling


def test_all_objects_are_of_the_same_pods():
    [deployment], [service] = of_kind("Deployment"), of_kind("Service")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    [policy], [budget], [monitor] = of_kind("NetworkPolicy"), of_kind("PodDisruptionBudget"), of_kind("ServiceMonitor")
    assert deployment["spec"]["selector"]["matchLabels"] == labels == service["spec"]["selector"]
    assert policy["spec"]["podSelector"]["matchLabels"] == labels == budget["spec"]["selector"]["matchLabels"]
    assert monitor["spec"]["selector"]["matchLabels"] == service["metadata"]["labels"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    [port], [service_port] = container["ports"], service["spec"]["ports"]
    assert {service_port["targetPort"], monitor["spec"]["endpoints"][0]["port"]} == {port["name"]}
    assert policy["spec"]["ingress"][0]["ports"][0]["port"] == port["name"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/health", "port": port["name"], "scheme": "HTTPS"}


def test_no_service_sets_a_variable_that_vllm_reads():
    """Kubernetes names variables after services, VLLM_PORT=tcp://10.0.0.1:443 for example; vLLM ends at that one."""
    [deployment] = of_kind("Deployment")
    assert deployment["spec"]["template"]["spec"]["enableServiceLinks"] is False


def test_the_team_reaches_the_service_and_pods_are_admitted_and_chosen_by_its_computers_addresses():
    [service], [policy] = of_kind("Service"), of_kind("NetworkPolicy")
    assert service["spec"]["type"] == "LoadBalancer"
    assert service["spec"]["externalTrafficPolicy"] == "Local"
    assert service["spec"]["sessionAffinity"] == "ClientIP"
    assert any("ipBlock" in source for rule in policy["spec"]["ingress"] for source in rule["from"])


def test_each_user_has_a_secret_that_is_mounted_and_the_server_refuses_everybody_else():
    [deployment] = of_kind("Deployment")
    pod = deployment["spec"]["template"]["spec"]
    [keys] = [volume for volume in pod["volumes"] if volume["name"] == "keys"]
    mounted = {source["secret"]["name"] for source in keys["projected"]["sources"]}
    assert mounted == {one["metadata"]["name"] for one in of_kind("Secret")}
    assert not any(one["stringData"]["token"] for one in of_kind("Secret"))
    [policy] = of_kind("NetworkPolicy")
    assert set(policy["spec"]["policyTypes"]) == {"Ingress", "Egress"}
    assert policy["spec"]["egress"] == []


def commands():
    """The command line of vLLM in each kind of deployment."""
    [deployment] = of_kind("Deployment")
    [compose], [serve] = documents("compose.yaml"), documents("ray/serve.yaml")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    return {
        "kubernetes": container["args"][0],
        "compose": compose["services"]["vllm"]["command"][0],
        "ray": " ".join(serve["applications"][0]["args"]["options"]),
    }


@pytest.mark.parametrize("where", ["kubernetes", "compose", "ray"])
def test_vllm_gets_options_that_it_has_and_those_that_typing_needs(where):
    known = set((RECORDED / "vllm_options.txt").read_text().split())
    command = commands()[where]
    options = set(re.findall(r"--[a-z-]+", command))
    assert options <= known
    assert re.search(r"--scheduling-policy[ =]priority", command)
    assert "--enable-prefix-caching" in options
    assert "--speculative-config" not in options  # the history of its method `suffix` is shared by all users


@pytest.mark.parametrize("where", ["kubernetes", "compose"])
@pytest.mark.parametrize("tokens", [["0123"], ["abc", "def"], []])
def test_vllm_reads_its_tokens_from_a_file_of_its_own_and_starts_with_none_without_them(where, tokens, tmp_path):
    """A command line is seen by every user of a machine."""
    (tmp_path / "keys").mkdir()
    for number, token in enumerate(tokens or [""]):
        (tmp_path / "keys" / f"user{number}").write_text(f"{token}\n" if token else "")
    script, _, arguments = commands()[where].replace("$$", "$").partition("exec vllm serve ")
    assert "--config /tmp/keys.yaml" in arguments
    assert "key" not in arguments.replace("--config /tmp/keys.yaml", "").replace("--ssl-keyfile /tls/tls.key", "")
    script = script.replace("/keys/*", f"{tmp_path}/keys/*").replace("/tmp/keys.yaml", f"{tmp_path}/keys.yaml")
    done = subprocess.run(["sh", "-c", f"{script}true"], check=False, capture_output=True)
    assert (done.returncode == 0) == bool(tokens), done.stderr
    assert yaml.safe_load((tmp_path / "keys.yaml").read_text()) == {"api-key": tokens or None}
    assert (tmp_path / "keys.yaml").stat().st_mode & 0o077 == 0


def test_rays_replica_takes_all_tokens_of_a_large_vocabulary_at_once():
    """A client compares them when it connects; Gemma has the largest vocabulary of the models in use."""
    [limit] = re.findall(r"^_LIMIT_BYTES = (\d+) << (\d+)", (DEPLOY / "ray/vllm_replica.py").read_text(), re.MULTILINE)
    assert int(limit[0]) << int(limit[1]) >= len(json.dumps({"tokens": list(range(262_144))}))
