from cloudpar_master.core.head import Head, Member
from cloudpar_master.core.policy import Policy
from cloudpar_master.core.quota import FIRST_SLICE_US, MARGIN_US, MOST_US, add_us, budget_us, slice_wanted_us
from master.core.folds import NOW, running
from support.heads import altered

POLICY = Policy(slice_us=30_000_000)


def package(**changes: object) -> Head:
    """Return a package of 100 tasks of 1 s each, of which 50 are done."""
    fields = {
        "done": 50, "used_us": 50_000_000, "reserved_us": 50_000_000, "measured": 50, "mean_us": 1e6, "wanted_us": 0,
    }  # fmt: skip
    return altered(running(), **{**fields, **changes})


def test_the_first_slice_is_a_guess() -> None:
    assert slice_wanted_us(package(done=0, used_us=0, reserved_us=0, measured=0, mean_us=0.0), POLICY) == FIRST_SLICE_US


def test_a_slice_covers_what_the_rest_is_likely_to_take() -> None:
    assert slice_wanted_us(package(done=90), POLICY) == 12_000_000 + MARGIN_US


def test_a_slice_is_bounded_for_each_executor() -> None:
    assert slice_wanted_us(package(), POLICY) == POLICY.slice_us
    assert slice_wanted_us(package(fleet={1: Member(3, NOW)}, done=0), POLICY) == 90_000_000


def test_the_next_slice_is_wanted_when_a_third_is_left() -> None:
    assert slice_wanted_us(package(reserved_us=50_000_000 + 10_000_000), POLICY) == 0
    assert slice_wanted_us(package(reserved_us=50_000_000 + 9_999_999), POLICY) == 30_000_000 - 9_999_999


def test_a_slice_covers_time_used_beyond_the_reserve() -> None:
    assert slice_wanted_us(package(used_us=51_000_000, done=100), POLICY) == 1_000_000


def test_a_package_with_no_task_left_wants_no_slice() -> None:
    for left_us in (0, 10_000_000):
        assert slice_wanted_us(package(done=100, reserved_us=50_000_000 + left_us), POLICY) == 0


def test_an_ended_package_wants_no_slice() -> None:
    assert slice_wanted_us(package(state="cancelled"), POLICY) == 0


def test_a_package_wants_no_slice_before_it_may_ask_again() -> None:
    assert slice_wanted_us(package(ask_again_at=NOW + 1), POLICY) == 0
    assert slice_wanted_us(package(ask_again_at=NOW), POLICY) > 0


def test_a_package_of_an_exhausted_account_uses_up_its_reserve_first() -> None:
    assert slice_wanted_us(package(exhausted=True, reserved_us=50_000_001), POLICY) == 0
    assert slice_wanted_us(package(exhausted=True), POLICY) == MARGIN_US
    assert slice_wanted_us(package(exhausted=True, used_us=55_000_000), POLICY) == 5_000_000


def test_no_slice_is_larger_than_a_table_holds() -> None:
    huge = package(mean_us=float(MOST_US), done=0, used_us=50_000_001, fleet={1: Member(10_000, NOW)})
    assert slice_wanted_us(huge, Policy(slice_us=MOST_US)) == MOST_US
    assert add_us(MOST_US, 2**63 - 1) == MOST_US < 2**63


def test_a_budget_is_what_the_account_and_the_reserve_have_left() -> None:
    assert budget_us(package(reserved_us=60_000_000), 7) == 10_000_007
    assert budget_us(package(used_us=60_000_000), 7) == 0
