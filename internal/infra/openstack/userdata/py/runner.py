"""Runs one method of a user data class.

The job comes as JSON on standard input; the outcome goes as JSON to file
descriptor 3: {"result": …} or {"error": {"stage", "type", "message", "where"}}.
The script may print what it likes.
"""

import importlib
import json
import os
import re
import resource
import sys
import traceback

# What a request always has in the reference's objects, though empty.
_LISTS = frozenset((
    "ext_virtual_links", "ext_managed_virtual_links", "vim_connection_info",
    "ext_cps", "ext_link_ports", "cp_config", "cp_protocol_data",
    "ip_addresses", "fixed_addresses", "scale_status", "vnfc_resource_info",
))
# What is handed over as it came: its keys are not attributes of the standard.
_VERBATIM = frozenset((
    "additional_params", "access_info", "interface_info", "extra",
    "extensions", "vnf_configurable_properties", "metadata",
))
_WORD = re.compile("(?<=[a-z0-9])([A-Z])")


class Info:
    """An object of the request: attributes by snake_case name, absent ones
    None (or empty, where the reference has lists and maps)."""

    def __init__(self, values):
        for key, value in values.items():
            name = _WORD.sub(r"_\1", key).lower()
            if name not in _VERBATIM:
                value = _info(value)
            self.__dict__[name] = value

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in _LISTS:
            return []
        if name in _VERBATIM:
            return {}
        return None

    def __contains__(self, name):
        return name in self.__dict__

    def get(self, name, default=None):
        return self.__dict__.get(name, default)

    def to_dict(self):
        def plain(value):
            if isinstance(value, Info):
                return value.to_dict()
            if isinstance(value, list):
                return [plain(item) for item in value]
            return value
        return {name: plain(value) for name, value in self.__dict__.items()}

    def __repr__(self):
        return "Info(%s)" % ", ".join(sorted(self.__dict__))


def _info(value):
    if isinstance(value, dict):
        return Info(value)
    if isinstance(value, list):
        return [_info(item) for item in value]
    return value


def _where(error, root):
    """The last place of the traceback that lies in the package."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(root):
            return "%s:%d" % (frame.filename[len(root):].lstrip("/"), frame.lineno)
    return ""


def _failed(stage, error, root):
    try:
        message = str(error)
    except Exception:  # an exception whose text is itself broken
        message = ""
    return {"error": {"stage": stage, "type": type(error).__name__,
                      "message": message[:8192], "where": _where(error, root)}}


def _run(job):
    root = job["package"]
    sys.dont_write_bytecode = True
    sys.path[:0] = [root, job["shim"]]
    try:
        module = importlib.import_module(job["module"])
    except BaseException as error:
        return _failed("import", error, root)
    klass = getattr(module, job["class"], None)
    if klass is None:
        return {"error": {"stage": "class", "type": "", "message": "", "where": ""}}
    if job["method"] != "instantiate" and not callable(getattr(klass, job["method"], None)):
        return {"error": {"stage": "method", "type": "", "message": "", "where": ""}}
    try:
        method = getattr(klass, job["method"])
        arguments = [job["base_hot"], job["vnfd"], Info(job["request"])]
        if job["method"] == "instantiate":
            arguments.append({node: [Info(image) for image in images]
                              for node, images in job["images"].items()})
        else:
            arguments += [Info(job.get("instance") or {}), Info(job.get("info") or {}),
                          job.get("parameters") or {}, _info(job.get("last"))]
        result = method(*arguments)
        if result is None and job["method"] != "instantiate":
            result = {}
    except BaseException as error:
        return _failed("run", error, root)
    if not isinstance(result, dict):
        return {"error": {"stage": "type", "type": type(result).__name__,
                          "message": "", "where": ""}}
    return {"result": result}


def _limit(limits):
    """Set the limits for good, before anything of the package has run."""
    for name, value in limits.items():
        what = getattr(resource, "RLIMIT_" + name)
        hard = resource.getrlimit(what)[1]
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(what, (value, value))


def _no_new_privileges():
    """Keep set-user-ID programs from giving the script another identity."""
    try:
        import ctypes
        ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    except Exception:  # a Python without ctypes: the user's own rights bound it
        pass


def main():
    out = os.fdopen(3, "wb", closefd=False)
    os.set_inheritable(3, False)
    job = json.loads(sys.stdin.buffer.read())
    _no_new_privileges()
    _limit(job["limits"])
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    outcome = _run(job)
    try:
        text = json.dumps(outcome, allow_nan=False)
    except Exception as error:
        text = json.dumps(_failed("json", error, job["package"]))
    out.write(text.encode("utf-8", "surrogatepass"))
    out.flush()
    # Threads and exit handlers that the script has left have no say any more.
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    os._exit(0)


main()
