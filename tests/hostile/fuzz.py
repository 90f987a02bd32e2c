"""The coverage-guided fuzzer (atheris), in the venv of requirements/fuzz.txt.

    PYTHONPATH=sdk/protocol:functions:tests build/fuzz/bin/python -m hostile.fuzz WHAT RUNS FOUND

WHAT is decoding, server or function. It begins with the corpus and writes what reaches new code, made as small as it
found it could be, to the folder FOUND: copied into the corpus, `make test` tries it from then on. A body that breaks
something ends it and is kept as FOUND/crash-....
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
"""So many requests one world takes: later ones would meet what the earlier ones left."""

LARGEST_BYTES = 4_096
HANG_S = 20


def decode(data: bytes) -> None:
    """Both messages of a route, and the error that may come in their place. What is let in can be sent on."""
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
    """Requests to a master, which is made anew now and then."""
    done = 0

    def one(data: bytes) -> None:
        nonlocal done
        ask(Knock.parse(data))
        done += 1
        if done % LIVES == 0:
            target.renew()

    return one


def write_words(path: Path) -> Path:
    """The names of all fields, as both media write them."""
    names = {name for kind in message_types().values() for name in kind.__struct_fields__}
    words = [codec.encode(name, media) for name in sorted(names) for media in MEDIA]
    path.write_text("".join('"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n' for word in words))
    return path


def seeds_of(target: Target) -> list[bytes]:
    """Everyday life, and one of everything there is."""
    all_there_is = [
        Knock(route, media, codec.encode(sample, media)).pack()
        for route in ROUTES
        for media in MEDIA
        for sample in samples(route.request)
    ]
    return [*target.seeds, *all_there_is]


def main(what: str, runs: str, found: str) -> None:
    """Fuzz."""
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
