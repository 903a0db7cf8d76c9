"""A mail server for tests: aiosmtpd, which keeps what it gets as lines of JSON.

    server.py TLS FILE [CERTIFICATE KEY [USER PASSWORD]]

TLS is starttls, implicit, none, or inject: a server on whose way somebody writes an answer behind the consent to
STARTTLS. The port stands on standard output once it listens; it ends with standard input. The local part of a recipient
says what becomes of the letter: later… is put off, refused… is refused, once… is put off the first time, lost… is kept
but never confirmed, and everybody else gets it.
"""

import asyncio
import json
import ssl
import sys
from email import message_from_bytes, policy

from aiosmtpd.smtp import SMTP, AuthResult

mode, kept, *rest = sys.argv[1:]
login = rest[2:]


class Box:
    def __init__(self):
        self.put_off = set()

    async def handle_RCPT(self, server, session, envelope, address, options):
        name = address.split("@")[0]
        if name.startswith("refused"):
            return "550 5.1.1 No such mailbox"
        if name.startswith("later") or (name.startswith("once") and name not in self.put_off):
            self.put_off.add(name)
            return "451 4.3.0 Try again later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        message = message_from_bytes(envelope.content, policy=policy.default)
        letter = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "user": session.auth_data.login.decode() if session.auth_data else None,
            "encrypted": session.ssl is not None or mode == "implicit",
            "headers": [[name, str(value)] for name, value in message.items()],
            "text": message.get_body(("plain",)).get_content(),
            "html": message.get_body(("html",)).get_content(),
        }
        with open(kept, "a", encoding="utf-8") as file:
            file.write(json.dumps(letter) + "\n")
        if envelope.rcpt_tos[0].startswith("lost"):
            server.transport.abort()
        return "250 Message accepted for delivery"


def check(server, session, envelope, mechanism, data):
    sent = [data.login.decode(), data.password.decode()]
    return AuthResult(success=sent == login, handled=False, auth_data=data)


async def injecting(reader, writer):
    """Every command is fine, and before TLS an answer more than was asked for comes back."""
    writer.write(b"220 mail.test ESMTP\r\n")
    encrypted = False
    while line := await reader.readline():
        verb = line.split()[0].upper() if line.split() else b""
        if verb == b"EHLO":
            writer.write(b"250 mail.test\r\n" if encrypted else b"250-mail.test\r\n250 STARTTLS\r\n")
        elif verb == b"STARTTLS":
            writer.write(b"220 Go ahead\r\n250 mail.test\r\n")
            await writer.drain()
            await writer.start_tls(context())
            encrypted = True
        elif verb == b"DATA":
            writer.write(b"354 Go on\r\n")
        elif verb in (b"MAIL", b"RCPT", b"QUIT", b"."):
            writer.write(b"250 OK\r\n")
        await writer.drain()


def context():
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(rest[0], rest[1])
    return made


async def main():
    loop, box = asyncio.get_running_loop(), Box()
    options = {"hostname": "mail.test", "loop": loop}
    if login:
        options |= {"authenticator": check, "auth_required": True, "auth_require_tls": mode == "starttls"}
    if mode == "starttls":
        options |= {"tls_context": context(), "require_starttls": True}
    if mode == "inject":
        server = await asyncio.start_server(injecting, "127.0.0.1", 0)
    else:
        secure = context() if mode == "implicit" else None
        server = await loop.create_server(lambda: SMTP(box, **options), "127.0.0.1", 0, ssl=secure)
    print(server.sockets[0].getsockname()[1], flush=True)
    # Whoever started it has gone when this ends.
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


asyncio.run(main())
