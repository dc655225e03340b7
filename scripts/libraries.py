"""Finds or installs the native libraries that sparring builds and runs on: libtorch and OpenVINO.

Prints the libtorch folder on stdout, everything for people on stderr. `scripts/setup` calls it; see
docs/install.md for what it looks at and why. With the argument `tensorboard`, `onnxruntime` or `onnxruntime-web` it does the same for
packages that tests use; `scripts/test` asks for those. Needs Python 3.7 and nothing outside its standard library,
besides pip when something has to be downloaded.

Layout of the cache folder, ${XDG_CACHE_HOME:-~/.cache}/sparring, shared by all checkouts of one user:

    libtorch-2.13.0-cpu/    lib/ and include/ alone, without CUDA
    libtorch-2.13.0-cuda/   torch/ and nvidia/ as pip unpacks them
    openvino-2026.4.1/      the shared libraries for inference on CPUs
    tensorboard-*/, onnxruntime-*/   packages for the tests, with what they need
    downloads/              wheels on their way; empty after a finished installation
    .lock                   held by the one set-up that installs
    .incoming-*             a folder being filled; renamed when complete, swept by the next installation

A folder counts as installed when its file `complete.json`, written last, names every library with its size
and all of them are there. So neither a kill nor a full disk can leave half a library that is taken for one.
"""

import contextlib
import errno
import glob
import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

TORCH = "2.13.0"
OPENVINO = "2026.4.1"
ONNXRUNTIME_WEB = "1.30.0"
# Python packages that tests use, by what `scripts/test` calls them.
PACKAGES = {
    "tensorboard": ["tensorboard==2.21.0"],
    "onnxruntime": ["onnxruntime==1.32.0", "onnx==1.23.2", "numpy==2.4.6"],
}
MARKER = "complete.json"
GB = 1e9

# What the build without CUDA needs: libtorch_cpu.so asks for these two libraries of CUDA by name, even on
# a machine without a GPU. Nothing here depends on the local Python, so the wheels of one version serve all.
CPU_WHEELS = ["torch==" + TORCH, "nvidia-cuda-runtime==13.0.96", "nvidia-cuda-cupti==13.0.85"]
CPU_FILES = re.compile(
    r"^torch/lib/(libtorch_cpu\.so|libc10\.so|libgomp\.so\.1)$"
    r"|^nvidia/.*/lib/(libcudart\.so\.13|libcupti\.so\.13)$"
)
# What inference of ONNX and IR models on a CPU needs; the other device plugins and frontends are left out.
OPENVINO_FILES = re.compile(
    r"^openvino/libs/(lib(?:openvino|openvino_c|openvino_onnx_frontend|openvino_ir_frontend"
    r"|openvino_intel_cpu_plugin|tbb|tbbbind_2_5|tbbmalloc|hwloc)\.so[.0-9]*)$"
)
WHEEL_TAGS = ["--only-binary=:all:", "--implementation=cp", "--python-version=3.11"]
WHEEL_TAGS += ["--abi=" + abi for abi in ("cp311", "abi3", "none")]
WHEEL_TAGS += ["--platform=%s_x86_64" % tag for tag in ("manylinux_2_28", "manylinux_2_25", "manylinux_2_17", "manylinux2014")]

# Free space asked for before an installation: wheels, their copy in pip's hands and the unpacked files.
SPACE = {"cpu": 1.4 * GB, "cuda": 8 * GB, "openvino": 0.5 * GB, "tensorboard": 0.5 * GB, "onnxruntime": 0.5 * GB, "onnxruntime-web": 0.4 * GB}


class Trouble(Exception):
    """Something is missing; the text is one sentence that says what and how to get it."""


def say(text):
    print("sparring set-up: " + text, file=sys.stderr, flush=True)


def on_linux_x86():
    return sys.platform.startswith("linux") and platform.machine() in ("x86_64", "amd64")


def library_suffix():
    return ".dylib" if sys.platform == "darwin" else ".so"


# ---------------------------------------------------------------- what is there


def wanted_variant():
    """cpu or cuda: as SPARRING_LIBTORCH says, else by whether this machine has an NVIDIA GPU."""
    asked = os.environ.get("SPARRING_LIBTORCH", "auto")
    if asked in ("cpu", "cuda"):
        return asked
    if asked not in ("", "auto"):
        raise Trouble("SPARRING_LIBTORCH is `%s`, but must be cpu, cuda or auto" % asked)
    if not sys.platform.startswith("linux"):
        return "cpu"
    if shutil.which("nvidia-smi"):
        try:
            listing = subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30)
            return "cuda" if listing.returncode == 0 and b"GPU " in listing.stdout else "cpu"
        except (OSError, subprocess.TimeoutExpired):
            pass
    return "cuda" if glob.glob("/dev/nvidia[0-9]*") else "cpu"


def torch_version(root, include):
    """The version of a libtorch folder from its version file or headers, or None."""
    try:
        with open(os.path.join(root, "build-version")) as file:
            return file.read().strip()
    except OSError:
        pass
    for header in ("torch/headeronly/version.h", "torch/csrc/api/include/torch/version.h"):
        try:
            with open(os.path.join(include, "include", header)) as file:
                text = file.read()
        except OSError:
            continue
        parts = [re.search(r"#define TORCH_VERSION_%s (\d+)" % part, text) for part in ("MAJOR", "MINOR", "PATCH")]
        if all(parts):
            return ".".join(part.group(1) for part in parts)
    return None


def check_libtorch(root, include=None, library=None):
    """What is wrong with a libtorch folder in words, or None."""
    include, library = include or root, library or root
    name = "libtorch_cpu" + library_suffix()
    if not os.path.exists(os.path.join(library, "lib", name)):
        return "has no lib/" + name
    if not os.path.exists(os.path.join(include, "include", "torch", "csrc", "api", "include", "torch", "torch.h")):
        return "has no C++ headers (include/torch/csrc/api/include/torch/torch.h)"
    version = torch_version(root, include)
    if version is None:
        return "does not say its version"
    if version.split("+")[0] != TORCH:
        return "is libtorch %s, but %s is needed" % (version, TORCH)
    return None


def is_complete(folder):
    """Whether `folder` is a finished installation: all that its marker lists is there in the right size."""
    try:
        with open(os.path.join(folder, MARKER)) as file:
            listed = json.load(file)["files"]
        return all(os.stat(os.path.join(folder, name)).st_size == size for name, size in listed.items())
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return False


def python_torch(cuda):
    """The folder of torch in the active Python, when it is the right version and, with `cuda`, has CUDA."""
    probe = (
        "import importlib.util as u\n"
        "s = u.find_spec('torch')\n"
        "print(list(s.submodule_search_locations)[0] if s and s.submodule_search_locations else '')\n"
    )
    pythons = [sys.executable]
    if os.environ.get("VIRTUAL_ENV"):
        pythons.insert(0, os.path.join(os.environ["VIRTUAL_ENV"], "bin", "python"))
    for python in pythons:
        if python == sys.executable:
            spec = importlib.util.find_spec("torch")
            root = list(spec.submodule_search_locations or [""])[0] if spec else ""
        else:
            try:
                answer = subprocess.run([python, "-c", probe], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60)
            except (OSError, subprocess.TimeoutExpired):
                continue
            root = answer.stdout.decode(errors="replace").strip()
        if root and check_libtorch(root) is None:
            if not cuda or os.path.exists(os.path.join(root, "lib", "libtorch_cuda.so")):
                return root
    return None


# ---------------------------------------------------------------- installing


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "sparring")


@contextlib.contextmanager
def locked(cache):
    """Holds the installation lock of the cache folder. Without lock support the final rename still decides."""
    try:
        os.makedirs(cache, exist_ok=True)
        file = open(os.path.join(cache, ".lock"), "a")
    except OSError as error:
        raise Trouble(
            "cannot write in the cache folder %s (%s): make it writable or set XDG_CACHE_HOME to another folder, "
            "then start again" % (cache, error.strerror)
        )
    with file:
        try:
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("another set-up is installing in %s, waiting for it" % cache)
                fcntl.flock(file, fcntl.LOCK_EX)
        except (ImportError, OSError):
            pass
        yield


def sweep(cache):
    """Removes what an interrupted set-up left behind. Call with the lock held."""
    for path in glob.glob(os.path.join(cache, ".incoming-*")) + glob.glob(os.path.join(cache, ".outgoing-*")):
        shutil.rmtree(path, ignore_errors=True)


def need_space(cache, key):
    free, need = shutil.disk_usage(cache).free, SPACE[key]
    if free < need:
        raise no_space(cache, "%.1f GB are needed for the installation and %.1f GB are free" % (need / GB, free / GB))


def no_space(cache, detail):
    return Trouble(
        "no room in %s (%s): free some, or set XDG_CACHE_HOME to a folder with more, and start again" % (cache, detail)
    )


def pip(cache, arguments, what):
    """Runs pip with its temporary files in the cache folder and without its own cache."""
    command = [sys.executable, "-m", "pip"]
    if subprocess.run(command + ["--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
        other = shutil.which("pip3") or shutil.which("pip")
        if not other:
            raise Trouble(
                "pip is missing: install it (on Debian and Ubuntu `apt-get install python3-pip`, elsewhere "
                "`%s -m ensurepip --user`) and start again" % sys.executable
            )
        command = [other]
    temporary = tempfile.mkdtemp(prefix=".incoming-pip-", dir=cache)
    options = ["--no-cache-dir", "--disable-pip-version-check", "--no-input", "--retries=5", "--timeout=60"]
    quiet = [] if sys.stderr.isatty() else ["--quiet"]
    # A user's settings for installing into a Python have no meaning here.
    settings = dict(os.environ, TMPDIR=temporary, PIP_USER="0", PIP_REQUIRE_VIRTUALENV="0", PIP_ROOT_USER_ACTION="ignore")
    full = False
    try:
        # Progress goes to stdout, complaints to stderr; the latter also tell whether the disk was full.
        running = subprocess.Popen(
            command + arguments[:1] + options + quiet + arguments[1:],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            stderr=subprocess.PIPE,
            env=settings,
        )
        try:
            for line in running.stderr:
                full = full or b"No space left" in line or b"quota exceeded" in line
                sys.stderr.buffer.write(line)
                sys.stderr.buffer.flush()
        except BaseException:
            running.terminate()
            raise
        finally:
            running.wait()
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    if full:
        shutil.rmtree(os.path.join(cache, "downloads"), ignore_errors=True)
        raise no_space(cache, "pip's message is above")
    if running.returncode != 0:
        raise Trouble(
            "pip could not get %s (its message is above): check the network and the package index that pip uses, "
            "then start again" % what
        )


def download(cache, wheel):
    """The path of a wheel in the downloads folder; a finished earlier download is used again by pip."""
    folder = os.path.join(cache, "downloads")
    os.makedirs(folder, exist_ok=True)
    pip(cache, ["download", "--no-deps", "--dest=" + folder] + WHEEL_TAGS + [wheel], wheel)
    name, version = wheel.split("==")
    found = glob.glob(os.path.join(folder, "%s-%s-*.whl" % (name.replace("-", "_"), version)))
    if not found:
        raise Trouble("pip downloaded no wheel for %s into %s: start again" % (wheel, folder))
    return found[0]


def unpack(wheel, into, place):
    """Unpacks the members that `place` maps to a path below `into`; zip checksums are verified on the way."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.infolist():
                path = None if member.is_dir() else place(member.filename)
                if path:
                    target = os.path.join(into, path)
                    os.makedirs(os.path.dirname(target), exist_ok=True)
                    with archive.open(member) as source, open(target, "wb") as file:
                        shutil.copyfileobj(source, file, 1 << 20)
    except (zipfile.BadZipFile, EOFError) as error:
        os.unlink(wheel)
        raise Trouble("the downloaded file %s was damaged (%s) and is removed: start again" % (wheel, error))


def stand_in(path):
    """An empty shared library: the linker wants one of this name and nothing is ever taken from it."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        raise Trouble("a C++ compiler is missing: install one (on Debian and Ubuntu `apt-get install g++`) and start again")
    done = subprocess.run(
        compiler.split() + ["-shared", "-fPIC", "-x", "c++", "-", "-o", path],
        input=b"",
        stdout=sys.stderr,
    )
    if done.returncode != 0:
        raise Trouble("the C++ compiler `%s` cannot link a shared library: install a working one and start again" % compiler)


def loads(libraries):
    """Tries to load shared libraries in a process of its own; the loader's complaint, or None."""
    code = "import ctypes, sys\nfor name in sys.argv[1:]: ctypes.CDLL(name)"
    done = subprocess.run([sys.executable, "-c", code] + libraries, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode == 0:
        return None
    lines = done.stdout.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "exit status %d" % done.returncode


def fill_libtorch_cpu(cache, folder):
    """The slim build: the CPU library, its headers and what it asks for by name."""
    for wheel in CPU_WHEELS:
        if wheel == CPU_WHEELS[0]:
            say("downloading libtorch %s without CUDA (0.54 GB)" % TORCH)

        def place(name):
            match = CPU_FILES.match(name)
            if match:
                return "lib/" + os.path.basename(name)
            return name[len("torch/") :] if name.startswith("torch/include/") else None

        path = download(cache, wheel)
        unpack(path, folder, place)
        os.unlink(path)
    stand_in(os.path.join(folder, "lib", "libtorch.so"))
    return folder


def fill_libtorch_full(cache, folder, cuda):
    """The whole wheel; with CUDA also the NVIDIA libraries that this torch was built with."""
    say("downloading libtorch %s%s" % (TORCH, " with CUDA (about 3 GB)" if cuda else ""))
    install = ["install", "--target=" + folder, "--no-compile", "--no-deps", "--only-binary=:all:"]
    pip(cache, install + ["torch==" + TORCH], "torch " + TORCH)
    if cuda:
        needed = []
        for metadata in glob.glob(os.path.join(folder, "torch-*.dist-info", "METADATA")):
            with open(metadata, encoding="utf-8") as file:
                for line in file:
                    match = re.match(r"Requires-Dist: ((?:cuda-toolkit|nvidia-)[^;]*)(;.*)?$", line)
                    if match and "extra" not in (match.group(2) or ""):
                        needed.append(match.group(1).strip())
        if not needed:
            raise Trouble("torch %s from this package index comes without CUDA: set SPARRING_LIBTORCH=cpu to go on without" % TORCH)
        # Dependencies are wanted here: `cuda-toolkit` is only a list of others.
        pip(cache, [a for a in install if a != "--no-deps"] + needed, "the CUDA libraries of torch " + TORCH)
    return os.path.join(folder, "torch")


def fill_openvino(cache, folder):
    say("downloading OpenVINO %s for inference on CPUs (0.06 GB)" % OPENVINO)

    def place(name):
        match = OPENVINO_FILES.match(name)
        return match.group(1) if match else None

    path = download(cache, "openvino==" + OPENVINO)
    unpack(path, folder, place)
    os.unlink(path)
    # The C library is looked up by its plain name, which the wheel does not have.
    for name in sorted(os.listdir(folder)):
        plain = re.sub(r"\.so\.[.0-9]+$", ".so", name)
        if plain != name and name.startswith("libopenvino"):
            os.symlink(name, os.path.join(folder, plain))


def finish(cache, folder, final):
    """Writes the marker and moves a filled folder to its place; an unfinished one there gives way."""
    listed = {}
    for at, _, names in os.walk(folder):
        for name in names:
            if re.search(r"\.(so|dylib)\b", name) or name in ("torch.h", "build-version", "event_accumulator.py"):
                path = os.path.join(at, name)
                listed[os.path.relpath(path, folder)] = os.stat(path).st_size
    os.chmod(folder, 0o755)
    # Everything must be on disk before the marker says so: else a power cut could leave holes of the right size.
    if hasattr(os, "sync"):
        os.sync()
    with open(os.path.join(folder, MARKER), "w") as file:
        json.dump({"files": listed}, file, indent=0, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    if os.path.lexists(final):
        if is_complete(final):
            return
        outgoing = tempfile.mkdtemp(prefix=".outgoing-", dir=cache)
        os.rename(final, os.path.join(outgoing, "old"))
        shutil.rmtree(outgoing, ignore_errors=True)
    os.rename(folder, final)


def install(cache, final, space, fill):
    """Fills a new folder and puts it in place. Call with the lock held."""
    sweep(cache)
    need_space(cache, space)
    folder = tempfile.mkdtemp(prefix=".incoming-", dir=cache)
    try:
        fill(folder)
        finish(cache, folder, final)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise no_space(cache, error.strerror)
        raise Trouble("cannot write in %s (%s): put that right and start again" % (error.filename or cache, error.strerror))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.rmdir(os.path.join(cache, "downloads"))


# ---------------------------------------------------------------- the two libraries


def libtorch():
    """The libtorch folder, installed when there is none."""
    given = os.environ.get("LIBTORCH", "")
    if given:
        wrong = check_libtorch(given, os.environ.get("LIBTORCH_INCLUDE"), os.environ.get("LIBTORCH_LIB"))
        if wrong:
            raise Trouble(
                "LIBTORCH is set to %s, which %s: point it at a libtorch %s or unset it to have one installed" % (given, wrong, TORCH)
            )
        return os.path.abspath(given)
    variant = wanted_variant()
    cuda = variant == "cuda"
    cache = cache_folder()
    final = os.path.join(cache, "libtorch-%s-%s" % (TORCH, variant))
    slim = on_linux_x86() and not cuda
    root = final if slim else os.path.join(final, "torch")
    if os.environ.get("LIBTORCH_USE_PYTORCH"):
        found = python_torch(False)
        if not found:
            raise Trouble("LIBTORCH_USE_PYTORCH is set, but the active Python has no torch %s: install it or unset the variable" % TORCH)
        return found
    if is_complete(final):
        return root
    found = python_torch(cuda)
    if found:
        return found
    with locked(cache):
        if is_complete(final):
            return root

        def fill(folder):
            made = fill_libtorch_cpu(cache, folder) if slim else fill_libtorch_full(cache, folder, cuda)
            with open(os.path.join(made, "build-version"), "w") as file:
                file.write(TORCH + "\n")
            complaint = check_libtorch(made) or loads([os.path.join(made, "lib", "libtorch_cpu" + library_suffix())])
            if complaint:
                raise Trouble("the installed libtorch does not work on this machine (%s): see docs/install.md for other ways" % complaint)

        install(cache, final, variant, fill)
        say("libtorch %s is installed in %s" % (TORCH, final))
    return root


def openvino():
    """Sees that OpenVINO is there. It makes inference on CPUs faster; without it everything still works."""
    if "SPARRING_OPENVINO" in os.environ:
        return
    cache = cache_folder()
    final = os.path.join(cache, "openvino-" + OPENVINO)
    if is_complete(final):
        return
    # One try a day: a machine that cannot have it is not to be told, nor to wait for the network, at every start.
    tried = os.path.join(cache, ".openvino-tried")
    with contextlib.suppress(OSError):
        if time.time() - os.stat(tried).st_mtime < 86400:
            return
    try:
        if not on_linux_x86():
            raise Trouble("there is no recipe for %s on %s" % (platform.system(), platform.machine()))
        with locked(cache):
            if is_complete(final):
                return

            def fill(folder):
                fill_openvino(cache, folder)
                libraries = sorted(glob.glob(os.path.join(folder, "libopenvino*.so")))
                complaint = loads(libraries) if libraries else "the wheel holds no libraries"
                if complaint:
                    raise Trouble("its libraries do not work on this machine (%s)" % complaint)

            install(cache, final, "openvino", fill)
            say("OpenVINO %s is installed in %s" % (OPENVINO, final))
    except Trouble as trouble:
        say("going on without OpenVINO, inference on the CPU will be slower: %s" % trouble)
        with contextlib.suppress(OSError):
            os.makedirs(cache, exist_ok=True)
            with open(tried, "w") as file:
                file.write("The last try to install OpenVINO failed; remove this file to try again before a day has passed.\n")


def for_tests(name, folder, fill):
    """A folder of the cache with what tests use, filled when it is not there; None when it cannot be had."""
    cache = cache_folder()
    final = os.path.join(cache, folder)
    if is_complete(final):
        return final
    try:
        with locked(cache):
            if not is_complete(final):
                install(cache, final, name, fill)
    except Trouble as trouble:
        say("the tests that need %s will be skipped: %s" % (name, trouble))
        return None
    return final


def package(name):
    """A folder to put on PYTHONPATH for a Python package of the tests, or None when it cannot be had."""
    wanted = PACKAGES[name]
    specs = [importlib.util.find_spec(each.split("==")[0]) for each in wanted]
    if all(spec and spec.submodule_search_locations for spec in specs):
        return os.path.dirname(list(specs[0].submodule_search_locations)[0])

    def fill(folder):
        say("downloading %s for the tests" % " ".join(wanted))
        pip(cache_folder(), ["install", "--target=" + folder, "--no-compile", "--only-binary=:all:"] + wanted, name)

    version = wanted[0].split("==")[1]
    tag = "%s-py%d.%d-%s-%s" % ((version,) + sys.version_info[:2] + (sys.platform, platform.machine()))
    return for_tests(name, "%s-%s" % (name, tag), fill)


def web():
    """A folder with the npm package onnxruntime-web, or None when it cannot be had."""

    def fill(folder):
        npm = shutil.which("npm")
        if not npm:
            raise Trouble("npm is missing: install it (on Debian and Ubuntu `apt-get install npm`) and start again")
        say("downloading onnxruntime-web %s for the tests" % ONNXRUNTIME_WEB)
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", folder]
        command = [npm, "install"] + quiet + ["onnxruntime-web@" + ONNXRUNTIME_WEB]
        if subprocess.run(command, stdout=sys.stderr, stdin=subprocess.DEVNULL).returncode != 0:
            raise Trouble("npm could not get onnxruntime-web (its message is above)")

    return for_tests("onnxruntime-web", "onnxruntime-web-" + ONNXRUNTIME_WEB, fill)


def main():
    try:
        if sys.argv[1:] == ["onnxruntime-web"]:
            print(web() or "")
            return 0
        if sys.argv[1:] and sys.argv[1] in PACKAGES:
            print(package(sys.argv[1]) or "")
            return 0
        root = libtorch()
        openvino()
    except Trouble as trouble:
        say(str(trouble))
        return 1
    except KeyboardInterrupt:
        say("interrupted; start again to finish the installation")
        return 130
    print(root)
    return 0


if __name__ == "__main__":
    # So that temporary folders are removed on the way out.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    sys.exit(main())
