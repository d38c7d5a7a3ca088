"""An S3 store on loopback for tests: objects in memory, and every request's signature checked.

The check follows AWS' description of Signature Version 4 and shares no code with libcurl. test-s3.py shows with
AWS' own client that it is the real thing.
"""

import hashlib
import hmac
import threading
import time
from datetime import datetime, timezone
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape

from servers import Server


class Refused(Exception):
    def __init__(self, status, code, message="", **more):
        super().__init__(code)
        self.status, self.code, self.message, self.more = status, code, message, more


def encode(text, slash=""):
    return quote(text, safe="-._~" + slash)


def signature(secret, method, target, headers, signed, payload, date, scope):
    """What the Authorization of such a request ends with."""
    parts = urlsplit(target)
    query = sorted((encode(k), encode(v)) for k, v in parse_qsl(parts.query, keep_blank_values=True))
    lines = [f"{name}:{' '.join(headers[name].split())}" for name in signed]
    request = "\n".join([method, encode(unquote(parts.path), "/"), "&".join(f"{k}={v}" for k, v in query),
                         *lines, "", ";".join(signed), payload])
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(request.encode()).hexdigest()])
    key = b"AWS4" + secret.encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Thing:
    def __init__(self, data, meta, modified):
        self.data, self.meta, self.modified = data, meta, modified
        self.etag = '"' + hashlib.md5(data).hexdigest() + '"'  # noqa: S324 (what S3 calls it)


class S3(Server):
    """One store. `conditions`: "yes", "no" (they are not looked at) or "501"; `page` objects stand on a page of a list."""

    def __init__(self, keys=None, bucket="snaps", region="us-east-1", token=None, conditions="yes", page=1000, tls=None):
        self.keys = {"AKTEST": "secret/with+signs"} if keys is None else keys
        self.bucket, self.region, self.token = bucket, region, token
        self.conditions, self.page, self.skew = conditions, page, 0
        self.things, self.lock, self.public = {}, threading.RLock(), False
        super().__init__(tls)

    def now(self):
        return time.time() + self.skew

    def put(self, key, data=b"x", age=0):
        with self.lock:
            self.things[key] = Thing(data, {}, self.now() - age)

    def make_older(self, seconds, prefix=""):
        for key, thing in self.things.items():
            if key.startswith(prefix):
                thing.modified -= seconds

    def names(self, prefix=""):
        return sorted(k for k in self.things if k.startswith(prefix))

    def answer(self, request):
        body = request.body()
        try:
            self.check(request, body)
            with self.lock:
                self.serve(request, body)
        except Refused as e:
            more = "".join(f"<{k}>{escape(v)}</{k}>" for k, v in e.more.items())
            text = f"<?xml version=\"1.0\"?>\n<Error><Code>{e.code}</Code><Message>{escape(e.message)}</Message>{more}</Error>"
            request.say(e.status, text.encode(), Content_Type="application/xml")

    # --- who asks -------------------------------------------------------------------------------

    def check(self, request, body):
        headers = {k.lower(): v for k, v in request.headers.items()}
        login = headers.get("authorization")
        if not login:
            if self.public:
                return
            raise Refused(403, "AccessDenied", "Access Denied")
        kind, _, rest = login.partition(" ")
        if kind != "AWS4-HMAC-SHA256":
            raise Refused(400, "InvalidRequest", "another kind of signature")
        fields = dict(part.strip().split("=", 1) for part in rest.split(","))
        access, scope = fields["Credential"].split("/", 1)
        if access not in self.keys:
            raise Refused(403, "InvalidAccessKeyId", "The AWS access key Id you provided does not exist in our records.")
        if scope.split("/")[1:] != [self.region, "s3", "aws4_request"]:
            raise Refused(400, "AuthorizationHeaderMalformed", f"the region is wrong; expecting '{self.region}'",
                          Region=self.region)
        self.check_head(headers, fields["SignedHeaders"].split(";"), scope)
        payload = headers["x-amz-content-sha256"]
        want = signature(self.keys[access], request.command, request.path, headers,
                         fields["SignedHeaders"].split(";"), payload, headers["x-amz-date"], scope)
        if not hmac.compare_digest(want, fields["Signature"]):
            raise Refused(403, "SignatureDoesNotMatch", "The request signature we calculated does not match")
        if payload != "UNSIGNED-PAYLOAD" and payload != hashlib.sha256(body).hexdigest():
            raise Refused(400, "XAmzContentSHA256Mismatch", "The provided header does not match what was computed")

    def check_head(self, headers, signed, scope):
        if signed != sorted(signed) or "host" not in signed:
            raise Refused(403, "AccessDenied", "the list of signed headers is wrong")
        unsigned = [h for h in headers if h.startswith("x-amz-") and h not in signed]
        if unsigned:
            raise Refused(403, "AccessDenied", f"not signed: {unsigned}")
        date = datetime.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
        if scope.split("/")[0] != headers["x-amz-date"][:8] or abs(date.timestamp() - self.now()) > 900:
            raise Refused(403, "RequestTimeTooSkewed", "The difference between the times is too large.")
        if self.token and headers.get("x-amz-security-token") != self.token:
            raise Refused(403, "InvalidToken", "The provided token is malformed or otherwise invalid.")

    # --- objects --------------------------------------------------------------------------------

    def serve(self, request, body):
        parts = urlsplit(request.path)
        bucket, _, key = unquote(parts.path)[1:].partition("/")
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        if bucket != self.bucket:
            raise Refused(404, "NoSuchBucket", "The specified bucket does not exist")
        if not key:
            return self.list(request, query)
        getattr(self, "do_" + request.command.lower())(request, key, body)

    def list(self, request, query):
        prefix, after = query.get("prefix", ""), query.get("continuation-token", "")
        names = [n for n in self.names(prefix) if n > after[len("next+"):-len("==")]]
        size = min(self.page, int(query.get("max-keys", 1000)))
        page, rest = names[:size], names[size:]
        out = ['<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">',
               f"<Name>{self.bucket}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(page)}</KeyCount>",
               f"<MaxKeys>1000</MaxKeys><IsTruncated>{'true' if rest else 'false'}</IsTruncated>"]
        if rest:
            out.append(f"<NextContinuationToken>next+{page[-1]}==</NextContinuationToken>")
        for name in page:
            t = self.things[name]
            stamp = datetime.fromtimestamp(t.modified, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")
            out.append(f"<Contents><Key>{escape(name)}</Key><LastModified>{stamp}</LastModified><ETag>{escape(t.etag)}</ETag>"
                       f"<Size>{len(t.data)}</Size><StorageClass>STANDARD</StorageClass></Contents>")
        request.say(200, "".join([*out, "</ListBucketResult>"]).encode(), Content_Type="application/xml")

    def find(self, key):
        if key not in self.things:
            raise Refused(404, "NoSuchKey", "The specified key does not exist.")
        return self.things[key]

    def head_of(self, thing):
        return {"ETag": thing.etag, "Last-Modified": datetime.fromtimestamp(thing.modified, timezone.utc).strftime(
            "%a, %d %b %Y %H:%M:%S GMT"), **thing.meta}

    def do_get(self, request, key, _):
        thing = self.find(key)
        wanted, head = request.headers.get("Range"), self.head_of(thing)
        if not wanted:
            return request.say(200, thing.data, **head)
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        first, last = int(first), min(int(last or len(thing.data) - 1), len(thing.data) - 1)
        if first >= len(thing.data):
            raise Refused(416, "InvalidRange", "The requested range is not satisfiable")
        request.say(206, thing.data[first:last + 1], **head, Content_Range=f"bytes {first}-{last}/{len(thing.data)}")

    def do_head(self, request, key, _):
        thing = self.find(key)
        request.say(200, Content_Length=str(len(thing.data)), **self.head_of(thing))

    def do_put(self, request, key, body):
        new, match = request.headers.get("If-None-Match"), request.headers.get("If-Match")
        if (new or match) and self.conditions == "501":
            raise Refused(501, "NotImplemented", "A header you provided implies functionality that is not implemented")
        if self.conditions == "yes":
            if (new and key in self.things) or (match and key in self.things and self.things[key].etag != match):
                raise Refused(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
            if match and key not in self.things:
                self.find(key)
        meta = {k: v for k, v in request.headers.items() if k.lower().startswith("x-amz-meta-")}
        self.things[key] = Thing(body, meta, self.now())
        request.say(200, ETag=self.things[key].etag)

    def do_delete(self, request, key, _):
        self.things.pop(key, None)
        request.say(204)

    def do_post(self, request, key, _):
        raise Refused(501, "NotImplemented", "not here")
