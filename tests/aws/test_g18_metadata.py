"""Confined tasks may use the network, but not reach the address where AWS hands out an instance's credentials.

The stack refuses the connection. The metadata service answers across one network hop only, and from a container on a
bridge it is two; the host's firewall rejects the connection already. On other machines the worker itself refuses it:
see tests/worker/isolation.
"""

import shlex
from collections.abc import Callable

from .template import ROOT, synthesized


def test_g18_the_metadata_service_is_out_of_reach(reached: Callable[[str], None]) -> None:
    resources = synthesized()["Resources"].values()
    templates = [
        each["Properties"]["LaunchTemplateData"] for each in resources if each["Type"] == "AWS::EC2::LaunchTemplate"
    ]
    assert templates
    for template in templates:
        options = template["MetadataOptions"]
        assert (options["HttpTokens"], options["HttpPutResponseHopLimit"]) == ("required", 1)
    words = shlex.split((ROOT / "infra/lib/host/run.sh").read_text(), comments=True)
    networks = [words[at + 1] for at, word in enumerate(words) if word in {"--network", "--net"}]
    assert networks == ["bridge"]
    prepared = (ROOT / "infra/lib/host/prepare.sh").read_text()
    assert "DOCKER-USER --destination 169.254.169.254 --protocol tcp --jump REJECT" in prepared
    reached("on AWS the metadata service answers one hop, and every worker's container is two away")
