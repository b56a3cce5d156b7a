"""The service that all dialects call: models, and the documents and glossaries of its clients."""

from contextlib import suppress

from dragoman.serve.admission import ArrivingBodies
from dragoman.serve.documents import DocumentDesk
from dragoman.serve.glossaries import GlossaryDesk
from dragoman.serve.metrics import log_warnings, write_log
from dragoman.serve.models import ServeModels
from dragoman.serve.refusals import ended
from dragoman.serve.settings import ServeSettings
from dragoman.serve.state import StateFolder
from dragoman.serve.tracing import open_tracing


class Service(ServeModels):
    """The models of a server, and the documents and glossaries that its clients keep there."""

    def __init__(self, settings: ServeSettings) -> None:
        """Open the folders. Raises InputError if no model can be used."""
        log_warnings()  # also those while opening folders
        with suppress(OSError):  # the file was read, but may be gone
            settings.keys.warn_of_readers()
        super().__init__(settings)
        self.bodies = ArrivingBodies(settings.limits)
        self.store = StateFolder(settings.state)
        self.glossaries = GlossaryDesk(self, self.store)
        self.documents = DocumentDesk(self, self.store)
        self.record_span = open_tracing()

    def abandon(self) -> int:
        """Abandon all requests that are not answered; return their number."""
        lost = [*self.queue.costs]
        for job in lost:
            job.end(ended())
        self.documents.cancel()
        return len(lost)

    def close(self) -> None:
        """Shut down the threads, and close the models and the state folder."""
        super().close()
        self.store.close()
        write_log(seconds=1)
