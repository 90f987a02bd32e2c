"""Recognizes data files that may contain keys, passwords or tokens. Workers on other machines never get them."""

import re
from fnmatch import translate

PATTERNS = (
    # keys, certificates with keys, and stores of them
    *("*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.ppk", "*.jks", "*.keystore", "*.kdb", "*.kdbx", "*.gpg", "*.pgp"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*"),
    # passwords and tokens of services
    *("*credential*", "*secret*", "*service_account*", "*service-account*", "*password*", "*passwd*", "*api_key*"),
    *("*apikey*", "*access_key*", "*private_key*", "token", "token.*", "*_token", "*_token.*", "*.token", "kubeconfig"),
    *("_netrc", "pgpass.conf", "*.pgpass", "*.ovpn", "*.rdp", "*.tfvars", "*.tfstate", "*.tfstate.backup"),
    # settings of one machine
    *("*.env", "*.env.*", "*.local.toml", "*.local.yaml", "*.local.yml", "*.local.json", "*.local.ini"),
)
"""Shell patterns for the lower-case names of data files that may contain secrets. Files whose names start with a dot
(.netrc, .env) are not sent either.
"""

FOLDERS = frozenset({"secrets", "credentials"})
"""The lower-case names of folders whose data files are never sent."""

_SECRET = re.compile("|".join(map(translate, PATTERNS)))


def is_secret(place: str) -> bool:
    """Whether a data file may contain a secret, judged by its name and the names of its folders.

    Args:
        place: The file's path relative to a folder of sys.path, with slashes.
    """
    *folders, name = place.lower().split("/")
    return _SECRET.match(name) is not None or not FOLDERS.isdisjoint(folders)
