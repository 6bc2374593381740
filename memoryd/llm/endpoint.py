"""Which server is being asked, in the words in which errors name it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A provider as configured. `key_source` says where its key comes from (never the key), empty when it has none."""

    provider: str
    base_url: str
    key_source: str = ""

    @property
    def section(self) -> str:
        """Name the section of the settings that a remedy points to."""
        return f"[providers.{self.provider}]"

    @property
    def key_remedy(self) -> str:
        """Say what to look at when the key is refused."""
        if self.key_source:
            return f"its key comes from {self.key_source}"
        return f"no key is configured: set api_key_env or api_key_file in {self.section}"
