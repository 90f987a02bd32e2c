"""The address where AWS hands out an instance's credentials: confined tasks may use the network, but not get there.

What refuses it is the stack. The metadata service answers one network hop only, and on a bridge the container is two
away; the host's firewall has it not even connect. Elsewhere the worker itself refuses: see tests/worker/isolation.
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
