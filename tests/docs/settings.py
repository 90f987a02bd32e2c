"""The settings of a deployment, as infra/lib/ names them."""

import json
import re

from docs.pages import ROOT


def limits() -> set[str]:
    """Those that set a limit of an account: infra/lib/settings.ts makes one of each in the contract."""
    contract = json.loads((ROOT / "infra/lib/contract.json").read_text(encoding="utf-8"))
    return {re.sub(r"_([a-z])", lambda letter: letter[1].upper(), name) for name in contract["largestLimits"]}


def settings() -> set[str]:
    """All of them."""
    source = (ROOT / "infra/lib/settings.ts").read_text(encoding="utf-8")
    return {*re.findall(r"^  readonly (\w+):", source, re.MULTILINE), *limits()}
