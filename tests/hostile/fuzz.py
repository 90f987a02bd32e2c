"""The coverage-guided fuzzer (atheris), in the venv of requirements/fuzz.txt.

    PYTHONPATH=sdk/protocol:functions:tests build/fuzz/bin/python -m hostile.fuzz WHAT RUNS FOUND

WHAT is decoding, server or function. The fuzzer starts with the corpus and writes inputs that reach new code, as
small as it could make them, to the folder FOUND; copied into the corpus, `make test` runs them. An input that causes
an error ends the fuzzer, which keeps it as FOUND/crash-....
"""

import logging
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["cloudpar_protocol", "cloudpar_master", "cloudpar_handlers"]):
    from cloudpar_protocol import codec
    from cloudpar_protocol.errors import RequestError
    from cloudpar_protocol.routes import ROUTES
    from cloudpar_protocol_tools.samples import message_types, samples
    from hostile.target import MEDIA, Knock, Target, Unsound

CORPUS = Path(__file__).parent / "corpus"
LIVES = 2_000
"""After this many requests a new world starts: later requests would depend on the state that earlier ones left."""

LARGEST_BYTES = 4_096
HANG_S = 20


def decode(data: bytes) -> None:
    """Decode both messages of a route and the error. Every decoded message can be encoded again."""
    knock = Knock.parse(data)
    for kind in (knock.route.request, knock.route.reply):
        try:
            message = codec.decode(knock.body, kind, knock.media)
        except RequestError as refusal:
            if refusal.status >= 500 or not str(refusal):
                raise Unsound(knock) from refusal
        else:
            for media in MEDIA:
                assert codec.decode(codec.encode(message, media), kind, media) == message
    codec.decode_error(knock.body, 500)


def on(target: Target, ask: Callable[[Knock], int]) -> Callable[[bytes], None]:
    """Send requests to a master, which is replaced now and then."""
    done = 0

    def one(data: bytes) -> None:
        nonlocal done
        ask(Knock.parse(data))
        done += 1
        if done % LIVES == 0:
            target.renew()

    return one


def write_words(path: Path) -> Path:
    """Write the names of all fields, as both media encode them."""
    names = {name for kind in message_types().values() for name in kind.__struct_fields__}
    words = [codec.encode(name, media) for name in sorted(names) for media in MEDIA]
    path.write_text("".join('"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n' for word in words))
    return path


def seeds_of(target: Target) -> list[bytes]:
    """Return the requests of normal use, and one of each kind."""
    all_there_is = [
        Knock(route, media, codec.encode(sample, media)).pack()
        for route in ROUTES
        for media in MEDIA
        for sample in samples(route.request)
    ]
    return [*target.seeds, *all_there_is]


def main(what: str, runs: str, found: str) -> None:
    logging.disable()
    folder = Path(tempfile.mkdtemp(prefix="cloudpar-fuzz-"))
    target = Target(folder)
    seeds = folder / "seeds"
    seeds.mkdir()
    for number, seed in enumerate(seeds_of(target)):
        (seeds / str(number)).write_bytes(seed)
    Path(found).mkdir(parents=True, exist_ok=True)
    one = {"decoding": decode, "server": on(target, target.server), "function": on(target, target.function)}[what]
    words = write_words(folder / "words")
    options = [
        f"-runs={runs}", f"-dict={words}", f"-max_len={LARGEST_BYTES}", f"-timeout={HANG_S}", "-rss_limit_mb=4000",
        f"-artifact_prefix={found}/", "-seed=1", "-print_final_stats=1", found, str(CORPUS), str(seeds),
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
