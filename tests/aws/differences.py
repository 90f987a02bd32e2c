"""Which stand-ins for AWS the ports' suites run on, which tests are left out on which stand-in, and why."""

import os

from support.memory.stores import in_memory
from support.scale import SCALE
from support.stores import FACTORIES, Factory

from .stores import on_dynamodb_local, on_elasticmq, on_engines, on_ministack, on_moto, on_versitygw

ON_MINISTACK = os.environ.get("CLOUDPAR_STAND_IN") == "ministack"
"""Whether the suites run on ministack only, as in `make e2e`."""

ON_VERSITYGW = os.environ.get("CLOUDPAR_STAND_IN") == "versitygw"
"""Whether the tests of blobs run on versitygw only, as in `make versitygw`."""

TABLES = {
    "test_accounts", "test_claims", "test_heads", "test_inbox", "test_pages", "test_quota", "test_registry",
    "test_usage",
}  # fmt: skip
QUEUES = {"test_queue_delivery", "test_task_queue"}

UPLOADED = "S3 answers 412 to the same upload as well; the uploader takes that for success"
DOTS = "an HTTP client resolves the dots of a path; our keys have none"
SURFACED = "SQS does not say how long a message has waited that became visible again"
DEAD = "SQS hides a dead letter for a while after it was read, as every message"

CHOICE = "SQS hands out messages in order and skips none"

AWS = {
    "test_a_chunk_that_came_back_unused_does_not_count_when_packages_take_turns": CHOICE,
    "test_a_blob_may_have_any_name": DOTS,
    "test_a_message_that_is_delivered_too_often_is_dead": DEAD,
    "test_a_message_says_how_long_it_has_waited": SURFACED,
    "test_blobs_of_similar_keys_are_apart": DOTS,
    "test_packages_in_besides_are_left_out": CHOICE,
    "test_two_packages_get_their_chunks_in_turns": CHOICE,
    "test_the_first_chunk_of_a_package_comes_before_all_others": CHOICE,
    "test_dead_messages_stay_until_they_are_deleted": DEAD,
    "test_the_same_upload_again_succeeds": UPLOADED,
}
"""Where AWS itself behaves differently, and why that is right here."""

UNSIGNED = "it serves requests without any signature; signed_links.py, before moto, does not"
ATTEMPTS = "it does not repeat an attempt as AWS does; test_task_queue.py checks that its id is sent"
DELETED = "it forgets the deduplication id of a deleted message; ElasticMQ and ministack remember"
EXPIRED = "it accepts an expired receipt; test_task_queue.py has AWS's answer"
MANY = "it is too slow for hundreds of calls; another stand-in runs this"
TIME = "it has its own clock, and no test waits; moto runs this, and test_surfacing.py makes messages visible at once"
LONG_AGO = "its clock cannot be set; test_g20_links.py has links that were made long ago"
ORDER = "it does not order messages of the same millisecond; SQS promises order in one group only"

UNREPEATED = {
    "test_an_attempt_again_brings_the_same": ATTEMPTS,
    "test_a_repeated_attempt_brings_the_messages_that_are_left": ATTEMPTS,
    "test_messages_that_a_repeated_attempt_brings_are_hidden_again": ATTEMPTS,
    "test_one_attempt_by_many_takes_no_more_than_one_would": ATTEMPTS,
}
TIMELESS = {
    "test_a_receipt_that_is_no_longer_good_is_ignored": TIME,
    "test_an_attempt_does_not_bring_messages_of_another": TIME,
    "test_an_extended_message_stays_hidden": TIME,
    "test_an_attempt_that_is_repeated_too_late_is_a_new_one": TIME,
    "test_an_extension_may_shorten_the_time": TIME,
    "test_a_group_that_is_sent_again_later_is_another_message": TIME,
    "test_dead_messages_do_not_hold_back_others": TIME,
    "test_a_message_is_dead_only_after_the_time_of_its_last_holder": TIME,
    "test_a_message_that_is_not_deleted_surfaces_again": TIME,
}

MOTO = UNREPEATED | {
    "test_a_cached_spec_is_the_stored_one": MANY,
    "test_a_group_is_sent_once_in_five_minutes": DELETED,
    "test_a_receipt_that_is_no_longer_good_is_ignored": EXPIRED,
    "test_spent_and_reserved_time_always_add_up": MANY,
}  # fmt: skip
ELASTICMQ = UNREPEATED | TIMELESS | {
    "test_messages_come_first_in_first_out": ORDER,
    "test_more_messages_than_one_call_of_a_service_carries_all_come": MANY,
}  # fmt: skip
VERSITYGW = {
    "test_g20_a_link_expires_after_fifteen_minutes": LONG_AGO,
    "test_a_deleted_blob_is_gone_and_those_with_similar_keys_stay": (
        "it keeps blobs as files, so no key may be a prefix folder of another; ours never are"
    ),
    "test_a_key_that_looks_like_all_blobs_deletes_none": "it refuses names like '..'; our keys have none",
}
MINISTACK = UNREPEATED | TIMELESS | {
    "test_g20_a_link_expires_after_fifteen_minutes": LONG_AGO,
    "test_a_link_without_its_signature_is_refused": UNSIGNED,
    "test_a_link_with_any_character_of_its_query_changed_is_refused": UNSIGNED,
    "test_an_additional_header_of_amazons_is_refused": "it accepts unsigned headers; signed_links.py does not",
}  # fmt: skip

S3 = on_versitygw if ON_VERSITYGW else on_ministack if ON_MINISTACK else on_moto
"""What the tests of links run on."""


SOUND: list[Factory] = [*FACTORIES, on_engines, *([on_ministack] if SCALE.full else [])]
"""Stand-ins that keep their conditions under concurrent calls. Only `make guarantees` installs ministack."""


def conforming(suite: str, test: str) -> list[Factory]:
    """Return the factories that a test of a port's suite runs on."""
    if ON_VERSITYGW:
        return [] if test in AWS | VERSITYGW else [on_versitygw]
    ours = [*FACTORIES, in_memory] if suite in TABLES | QUEUES else FACTORIES
    if test in AWS:
        return [] if ON_MINISTACK else ours
    if ON_MINISTACK:
        return [] if test in MINISTACK else [on_ministack]
    chosen = [] if test in MOTO else [on_moto]
    if suite in TABLES:
        chosen.append(on_dynamodb_local)
    if suite in QUEUES and test not in ELASTICMQ:
        chosen.append(on_elasticmq)
    return [*ours, *chosen]
