"""Everything that can go wrong, as one tree; each leaf exists because somebody catches it or prints it differently.

MemorydError
├── UsageError                  wrong arguments (exit 2)
│   └── ConfigError             wrong settings (exit 2; `run`: 78)
├── LeaseLost                   a holder's lease is gone: change nothing more
├── StorageError                the ledger or the folder cannot be used
│   ├── DiskFull                no space or read-only: pause, spend nothing, look again later
│   ├── LedgerBusy              another process holds memoryd.lock
│   │   └── LedgerLocked        another program holds SQLite's lock on the ledger
│   ├── LedgerTooNew            written by a newer memoryd (exit 2; `run`: 78)
│   └── LedgerCorrupt           SQLite says the file is damaged
├── GitError                    git refused a command
│   └── GitMissing              there is no git program
├── Exhausted                   the daemon passed a bound of memory or descriptors (exit 75: start it again)
├── SourceError                 a session file cannot be used
│   ├── SessionVanished         it is no longer there
│   ├── SessionUnreadable       permission, input/output, or not a session at all
│   └── SessionWithoutItems     it has bytes but nothing in it was understood
├── BudgetSpent                 a cap of ours would be passed: not sent
├── JobCapReached               a cap of this run would be passed: not sent, and the run ends
├── ModelError                  what a model endpoint can do wrong
│   ├── ModelUnavailable        a later try may work, and costs no attempt
│   │   ├── RateLimited         429, or a usage-limit sentence in a 200
│   │   ├── Overloaded          5xx, 529
│   │   ├── Unreachable         no connection, time-out, broken transfer
│   │   ├── AuthRefused         401, 403: the key
│   │   └── UnknownModel        404: the model or the path
│   ├── ContextOverflow         the input is too long for the model
│   ├── StructureUnsupported    a 4xx that names the structured-output parameter
│   ├── RequestRefused          any other 4xx
│   │   ├── EffortUnsupported   one that names the reasoning-effort parameter
│   │   ├── OutputLimitUnsupported   one that does not know the limit of the answer by the name it was given
│   │   └── OutputLimitTooLarge      one that says that the limit of the answer is more than the model can say
│   └── BadReply                an answer arrived, and it is no answer
│       ├── MalformedReply      not the JSON that was asked for
│       ├── TruncatedReply      cut at the output limit
│       └── RefusedReply        the model declined
├── ServiceError                the service could not be installed, started or asked
│   ├── NoServiceManager        nothing here keeps a service: no systemd of the user, no launchd
│   └── ServiceNotStarted       it was installed and does not start: told with the end of its log
└── ResultRejected              a consolidation that acceptance turned down
"""


class MemorydError(Exception):
    """Base of every error that memoryd raises on purpose.

    `message` says what was attempted, on what, and why it failed; `remedy` says what to do about it. `usual_remedy` is
    what to do about any error of the kind that says nothing of its own.
    """

    exit_code = 1
    usual_remedy = ""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} ({self.remedy})" if self.remedy else self.message

    def told(self) -> str:
        """Return what a person is told: the message, and what to do."""
        remedy = self.remedy or self.usual_remedy
        return f"{self.message} ({remedy})" if remedy else self.message


class UsageError(MemorydError):
    """Wrong arguments on the command line."""

    usual_remedy = "the command's --help says what it takes"

    exit_code = 2


class ConfigError(UsageError):
    """A setting is wrong; the message names the file or variable, the key, and never a secret's value."""


class Exhausted(MemorydError):
    """The daemon has passed a bound that it should never come near, and ended so that it is started anew."""

    exit_code = 75
    """EX_TEMPFAIL of sysexits: service managers start what ended with it again."""


class LeaseLost(MemorydError):
    """The lease is no longer ours: stop the work and write nothing."""


class StorageError(MemorydError):
    """The ledger or the memory folder cannot be read or written."""

    usual_remedy = "`memoryd doctor` looks at the ledger, the folder and the disk"


class DiskFull(StorageError):
    """No space left, or a read-only file system."""


class LedgerBusy(StorageError):
    """Another process holds memoryd.lock. `pid` is its process id, or None when unknown."""

    def __init__(self, message: str, *, remedy: str = "", pid: int | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.pid = pid


class LedgerLocked(LedgerBusy):
    """Another program, no memoryd that holds memoryd.lock, keeps the ledger's file locked."""


class LedgerTooNew(StorageError):
    """The ledger was written by a newer version of memoryd."""

    exit_code = 2


class LedgerCorrupt(StorageError):
    """SQLite says that the ledger is damaged or not a database."""

    usual_remedy = "it is set aside at the next start, and a backup takes its place; `memoryd status` says which"


class GitError(MemorydError):
    """git refused a command."""


class GitMissing(GitError):
    """There is no usable git program on PATH."""


class SourceError(MemorydError):
    """A session file cannot be used."""


class SessionVanished(SourceError):
    """The session file is no longer there."""

    usual_remedy = "it is read when it is back; a memory that came of it stays"


class SessionUnreadable(SourceError):
    """The session file cannot be read, or is not a session."""

    usual_remedy = "it is left out until its file changes; `memoryd explain PATH` tells more"


class SessionWithoutItems(SourceError):
    """The session file has bytes, but nothing in it was understood."""


class BudgetSpent(MemorydError):
    """A cap of ours would be passed by this request, so it was not sent.

    `retry_at` is the instant (epoch seconds) from which the cap allows requests again, None when only a person can
    change that.
    """

    def __init__(self, message: str, *, remedy: str = "", retry_at: float | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.retry_at = retry_at


class JobCapReached(MemorydError):
    """A cap on one run of a job would be passed, so that the request was not sent and the run ends: it ran away."""


class ModelError(MemorydError):
    """Base of what a model endpoint can do wrong. `status` is the HTTP status, None when there was none.

    `spent` are the tokens (input, output) that the failure took all the same, where that is known.
    """

    def __init__(self, message: str, *, remedy: str = "", status: int | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.status = status
        self.spent: tuple[int, int] | None = None


class ModelUnavailable(ModelError):
    """A later try may work; costs no attempt. `retry_after` is in seconds, None when the server did not say."""

    def __init__(
        self, message: str, *, remedy: str = "", status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, remedy=remedy, status=status)
        self.retry_after = retry_after


class RateLimited(ModelUnavailable):
    """429, or a usage-limit sentence inside a 200."""

    usual_remedy = "it is asked again by itself; `memoryd status` says when"


class Overloaded(ModelUnavailable):
    """5xx and 529."""

    usual_remedy = "it is asked again by itself; `memoryd status` says when"


class Unreachable(ModelUnavailable):
    """No connection, a time-out, or a transfer that broke off."""


class AuthRefused(ModelUnavailable):
    """401 or 403: the key is missing, wrong or not allowed."""


class UnknownModel(ModelUnavailable):
    """404: the endpoint does not know the model or the path."""


class ContextOverflow(ModelError):
    """The input is too long for the model."""

    usual_remedy = "a shorter input is tried by itself; context_window of the provider bounds it from the start"


class StructureUnsupported(ModelError):
    """A 4xx that names the structured-output parameter."""

    usual_remedy = "it is asked again in a simpler manner by itself"


class RequestRefused(ModelError):
    """Any other 4xx."""


class EffortUnsupported(RequestRefused):
    """A 4xx that names the reasoning-effort parameter: the request is made again without it."""


class OutputLimitUnsupported(RequestRefused):
    """A 4xx that does not know the limit of the answer by this name: it is made again with another, or without."""


class OutputLimitTooLarge(RequestRefused):
    """A 4xx that says that the model cannot answer at such length: the request is made again with half the limit."""


class BadReply(ModelError):
    """An answer arrived, and it is no answer."""


class MalformedReply(BadReply):
    """Not the JSON that was asked for."""

    usual_remedy = "it is tried again; if it keeps happening, choose another model"


class TruncatedReply(BadReply):
    """Cut at the output limit."""


class RefusedReply(BadReply):
    """The model declined."""

    usual_remedy = "it is tried again; if it keeps happening, choose another model"


class ServiceError(MemorydError):
    """The service manager refused, or did not answer."""


class NoServiceManager(ServiceError):
    """There is nothing here that could keep a service."""


class ServiceNotStarted(ServiceError):
    """The service does not start; `lines` are the last ones of its log."""

    def __init__(self, message: str, *, remedy: str = "", lines: tuple[str, ...] = ()) -> None:
        super().__init__(message, remedy=remedy)
        self.lines = lines


class ResultRejected(MemorydError):
    """A consolidation that acceptance turned down; `complaints` says why, a sentence each."""

    usual_remedy = "it is tried again from a clean context; `memoryd jobs show global` has the complaints"

    def __init__(self, message: str, *, remedy: str = "", complaints: tuple[str, ...] = ()) -> None:
        super().__init__(message, remedy=remedy)
        self.complaints = complaints
