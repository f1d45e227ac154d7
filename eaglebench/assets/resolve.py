"""From what a user named to a folder: an asset, a folder, or a Hub id."""

from difflib import get_close_matches
from pathlib import Path

from eaglebench.assets.catalog import CATALOG
from eaglebench.assets.fetch import ensure
from eaglebench.assets.progress import Notice
from eaglebench.errors import AssetError
from eaglebench.files import is_file, is_folder, user_path


def resolve_model(name: str, *, notice: Notice) -> Path:
    """A local folder that holds the named model.

    Raises:
        AssetError: it is no asset, no folder and can't be had from the Hub.
    """
    check_model_name(name)
    if name in CATALOG:
        return ensure(name, notice=notice)
    path = user_path(name)
    return path if is_folder(path) else _from_hub(name, notice)


def check_model_name(name: str) -> None:
    """Refuse what can't name a model, before anything is fetched or loaded.

    Raises:
        AssetError: it is no asset, no folder and no Hub id.
    """
    if name in CATALOG:
        if CATALOG[name].kind == "questions":
            raise AssetError(f"{name} is a set of questions, not a model")
        return
    path = user_path(name)
    if is_folder(path):
        return
    if is_file(path):
        raise AssetError(
            f"{name} is a file; expected a folder with config.json and weights",
            hint="a GGUF file is not loaded directly; convert it to a folder first",
        )
    if "/" not in name or name.startswith((".", "/", "~")):
        models = model_names()
        near = get_close_matches(name, models, n=2, cutoff=0.6)
        raise AssetError(
            f"there is no asset, folder or Hub id {name!r}",
            hint=f"did you mean {' or '.join(near)}?" if near else f"assets: {', '.join(models)}",
        )


def model_names() -> list[str]:
    """Assets that are targets or heads."""
    return [each.name for each in CATALOG.values() if each.kind != "questions"]


def local_folder(name: str) -> Path | None:
    """The folder of a model that is on this machine already; None where it would be fetched."""
    if name in CATALOG:
        path = CATALOG[name].path
        return path if path.exists() else None
    path = user_path(name)
    return path if is_folder(path) else None


def default_draft(target: str) -> str | None:
    """The head that belongs to a target asset; None where the user has to name one."""
    return CATALOG[target].draft if target in CATALOG else None


def _from_hub(name: str, notice: Notice) -> Path:
    from huggingface_hub import snapshot_download  # noqa: PLC0415  # slow, and seldom needed
    from huggingface_hub.errors import HfHubHTTPError  # noqa: PLC0415

    notice(f"looking up {name} on the Hub")
    try:
        return Path(snapshot_download(name))
    except (OSError, ValueError, HfHubHTTPError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise AssetError(
            f"{name} can't be had from the Hub: {reason}",
            hint="give a local folder to --model or --draft-model",
        ) from error
