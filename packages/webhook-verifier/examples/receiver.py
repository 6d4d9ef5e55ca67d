"""Receives webhooks with nothing but Python's standard library (3.9 or later)."""

import hashlib
import hmac
import json
import os
import re
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SIGNATURE = re.compile(r"t=(0|[1-9]\d{0,11}),v1=([0-9a-f]{64})", re.ASCII)
DELIVERY_ID = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)
REPLAY_COUNT = re.compile(r"0|[1-9]\d{0,8}", re.ASCII)
VERSION = re.compile(r"[1-9]\d{0,8}", re.ASCII)
TOLERANCE_SECONDS = 300


class Unverified(Exception):
    """The request is not a delivery of Callplane. `status` is the answer to it."""

    def __init__(self, reason, status=400):
        super().__init__(reason)
        self.status = status


def verify(get_all, body, secrets, now=None):
    """Returns the event of a delivery.

    get_all: returns all values of a header, as Message.get_all does. body: the bytes as they arrived.
    secrets: the signing secrets by version, {"1": "whsec_..."}; the prefix belongs to the secret.
    """

    def header(name, form):
        values = get_all(name) or []
        match = form.fullmatch(values[0]) if len(values) == 1 else None
        if match is None:
            raise Unverified(f"{name} is missing, malformed or repeated")
        return match

    signature = header("x-service-signature", SIGNATURE)
    delivery_id = header("x-service-delivery-id", DELIVERY_ID).group()
    replay_count = header("x-service-replay-count", REPLAY_COUNT).group()
    version = header("x-service-signing-key-version", VERSION).group()
    timestamp = signature.group(1)
    if abs((time.time() if now is None else now) - int(timestamp)) > TOLERANCE_SECONDS:
        raise Unverified("the timestamp is more than 300 seconds from now")
    if version not in secrets:
        # The delivery is retried, and succeeds once the secret is deployed.
        raise Unverified(f"there is no secret of version {version}", 503)
    signed = f"{timestamp}.{delivery_id}.{replay_count}.".encode() + body
    expected = hmac.new(secrets[version].encode(), signed, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected, signature.group(2)):
        raise Unverified("the signature does not match")
    try:
        event = json.loads(body.decode("utf-8"))
    except ValueError as error:
        raise Unverified("the body is not JSON") from error
    if not isinstance(event, dict):
        raise Unverified("the body is not a JSON object")
    return event


processed = set()  # A database in practice: store the id in the transaction of your work.


def process_once(event):
    if event["id"] in processed:
        return
    processed.add(event["id"])
    print("processing", event["type"], event["id"], flush=True)


class Receiver(BaseHTTPRequestHandler):
    secrets = json.loads(os.environ.get("WEBHOOK_SECRETS", "{}"))

    def do_POST(self):
        length = self.headers.get("content-length") or "0"
        if not re.fullmatch(r"[0-9]{1,7}", length) or int(length) > 1024 * 1024:
            self.send_error(413)
            return
        body = self.rfile.read(int(length))
        try:
            process_once(verify(self.headers.get_all, body, self.secrets))
            self.send_response(204)
        except Unverified as error:
            self.log_error("%s", error)
            self.send_response(error.status)
        self.end_headers()


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "3000"))), Receiver)
    print("listening on", server.server_port, flush=True)
    server.serve_forever()
