"""Why a finished run matches two entities: as text, as JSON, as a page."""
