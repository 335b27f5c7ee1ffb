"""Where things live: the repository, the cache folder, and the tools fetched into it."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
CONFORMANCE = REPOSITORY / "conformance"
CACHE = REPOSITORY / ".cache" / "conformance"
LOGS = CACHE / "logs"
# Shared with the SDK scenarios, which use the same crates.
RUST_TARGET = REPOSITORY / ".cache" / "rust-target"

PYTHON_SDK = "4.17.1"
TABLES_SDK = "12.7.0"
RUST_SDK = "1.1.0-beta.1"

# Exact versions: a suite that changes under us would make the expected lists lie.
PYTHON_PACKAGES = [
    f"azure-cosmos=={PYTHON_SDK}",
    f"azure-data-tables=={TABLES_SDK}",
    "azure-identity==1.27.0",
    "aiohttp==3.14.5",
    "pytest==9.2.0",
    "pytest-asyncio==1.4.1.post1",
    "pytest-timeout==2.4.0",
    "python-dotenv==1.2.4",
    "pyparsing==3.3.3",
    "certifi",
    "PyYAML==6.0.3",
    "ConfigArgParse==1.9.0",
    "python-dateutil==2.9.0.post0",
]


class PreparationFailed(Exception):
    """Something that a suite needs could not be fetched or built."""


def say(text):
    print(f"conformance: {text}", flush=True)


def run(command, what, **options):
    """Runs a preparation step; its output is shown only when it fails."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options
    )
    if done.returncode != 0:
        raise PreparationFailed(f"{what} failed\n{done.stdout[-4000:]}")
    return done.stdout


def venv_python():
    """The Python of the suite's own virtual environment, made on first use."""
    venv = CACHE / "venv"
    python = venv / "bin" / "python"
    stamp = venv / "packages.txt"
    wanted = "\n".join(PYTHON_PACKAGES)
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    say(f"installing azure-cosmos {PYTHON_SDK}, azure-data-tables {TABLES_SDK} and pytest into {venv.relative_to(REPOSITORY)}")
    run([sys.executable, "-m", "venv", "--clear", str(venv)], "making the virtual environment")
    run([str(python), "-m", "pip", "install", "-q", *PYTHON_PACKAGES], "pip install")
    stamp.write_text(wanted)
    return python


def python_suite_folder(python):
    return _source_tests(python, "azure-cosmos", PYTHON_SDK)


def tables_suite_folder(python):
    return _source_tests(python, "azure-data-tables", TABLES_SDK)


def _source_tests(python, package, version):
    """The unpacked tests of a source package, without its library code.

    Only `tests/` is taken, so that the installed package is what gets imported.
    """
    folder = CACHE / f"{package}-{version}"
    if not (folder / "tests").is_dir():
        say(f"downloading the source package {package} {version} for its tests")
        download = CACHE / "download"
        download.mkdir(parents=True, exist_ok=True)
        run(
            [str(python), "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:",
             "-d", str(download), f"{package}=={version}"],
            "pip download",
        )
        archive = next(download.glob(f"{package.replace('-', '[_-]')}-{version}.tar.gz"))
        unpacked = CACHE / "unpacked"
        with tarfile.open(archive) as tar:
            tar.extractall(unpacked, filter="data")
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copytree(next(unpacked.iterdir()) / "tests", folder / "tests")
        shutil.rmtree(unpacked)
    shutil.copy(CONFORMANCE / "standin" / "pytest.ini", folder / "pytest.ini")
    return folder


def crate_folder(name):
    """A writable copy of a published crate, its own workspace so that cargo builds it alone."""
    folder = CACHE / "crates" / f"{name}-{RUST_SDK}"
    if folder.is_dir():
        return folder
    say(f"downloading the crate {name} {RUST_SDK} for its tests")
    source = _download_crate(name)
    shutil.copytree(source, folder)
    manifest = folder / "Cargo.toml"
    manifest.chmod(0o644)
    manifest.write_text(manifest.read_text() + "\n[workspace]\n")
    return folder


def _download_crate(name):
    """Lets cargo fetch the crate (it checks the checksum) and says where it unpacked it."""
    scratch = CACHE / "scratch"
    (scratch / "src").mkdir(parents=True, exist_ok=True)
    (scratch / "src" / "lib.rs").write_text("")
    (scratch / "Cargo.toml").write_text(
        '[package]\nname = "scratch"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n'
        f'[dependencies]\n{name} = "={RUST_SDK}"\n'
    )
    run(["cargo", "fetch", "--manifest-path", str(scratch / "Cargo.toml")], "cargo fetch")
    home = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
    found = sorted((home / "registry" / "src").glob(f"*/{name}-{RUST_SDK}"))
    if not found:
        raise PreparationFailed(f"cargo fetched {name} {RUST_SDK} but its source was not found")
    return found[0]
