"""Fills the fields of a log line with the ids in a call and the result of the call, never with a payload."""

from cloudpar_master.adapters.aws.errors import translate
from cloudpar_master.services.dispatcher import Call
from cloudpar_protocol.client_messages import Acknowledge, AwaitTasks, CancelTasks, StartTasks, StartTasksReply
from cloudpar_protocol.errors import RequestError
from cloudpar_protocol.worker_messages import ExtendLeases, GiveBack, PublishResults, RetrieveTasks, RetrieveTasksReply

from .request_log import Entry


def note_call(entry: Entry, call: Call) -> None:
    """Record the caller's role and account, and the packages that the call names.

    For retrievals and publications, which workers send, also record the worker's id.
    """
    entry.note(account_id=call.user.account_id if call.user else None, role=call.caller.role)
    match call.request:
        case AwaitTasks(packages=cursors):
            entry.packages([cursor.package_id for cursor in cursors])
        case Acknowledge(package_ids=package_ids):
            entry.packages(package_ids)
        case CancelTasks(package_id=package_id):
            entry.packages([package_id])
        case PublishResults(worker_id=worker_id, publications=publications):
            entry.note(worker_id=worker_id)
            entry.packages([publication.package_id for publication in publications])
        case RetrieveTasks(worker_id=worker_id):
            entry.note(worker_id=worker_id)
        case ExtendLeases(leases=leases):
            entry.packages([lease.package_id for lease in leases])
        case GiveBack(returns=returns):
            entry.packages([item.package_id for item in returns])
        case _:
            pass


def note_reply(entry: Entry, call: Call, reply: object) -> None:
    """Record the effect of a call, such as the package that it started or the number of results that it published."""
    match call.request, reply:
        case StartTasks(n=tasks), StartTasksReply(package_id=package_id):
            entry.packages([package_id])
            entry.note(tasks=tasks)
            entry.count("PackagesStarted")
        case PublishResults(publications=publications), _:
            entry.count("TasksPublished", sum(len(publication.results) for publication in publications))
        case RetrieveTasks(), RetrieveTasksReply(leases=leases):
            entry.packages([lease.package_id for lease in leases])
            entry.note(leases=len(leases))
        case _:
            pass


def note_error(entry: Entry, error: Exception) -> Exception:
    """Record why a call failed, and return the error for its caller.

    An error of AWS after which the call may succeed later is translated to a RequestError. For a RequestError the line
    gets the error's code. Any other error is unforeseen, and the line gets its traceback.
    """
    reason = translate(error)
    if isinstance(reason, RequestError):
        entry.note(error=reason.code)
    else:
        entry.fail(error)
    return reason
