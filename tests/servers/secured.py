"""A Kafka broker that also listens with TLS and passwords, by a certificate of its own authority."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from tests.servers.kafka import Broker, free_ports

USER, PASSWORD = "alice", "of the tests"
_PROPERTIES = """\
listeners=PLAINTEXT://127.0.0.1:{{port}},SASL_SSL://127.0.0.1:{port},CONTROLLER://127.0.0.1:{{controller}}
advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},SASL_SSL://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_ssl.plain.sasl.jaas.config=\\
 org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
"""


class Secured:
    """Its broker, for those who need no password, and how the others reach it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.authority = folder / "authority.pem"
        keystore = folder / "keystore.pem"
        keystore.write_text(_certificate(self.authority))
        (port,) = free_ports(1)
        self.servers = f"127.0.0.1:{port}"
        more = _PROPERTIES.format(port=port, user=USER, password=PASSWORD, keystore=keystore)
        self.broker = Broker(folder, more)

    def client(self, password: str = PASSWORD) -> dict[str, str]:
        """Options in librdkafka's names."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanisms": "PLAIN",
            "sasl.username": USER,
            "sasl.password": password,
            "ssl.ca.location": str(self.authority),
        }

    def java(self, password: str = PASSWORD) -> dict[str, str]:
        """Options of Spark's connector."""
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        return {
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.jaas.config": f'{login} username="{USER}" password="{password}";',
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.location": str(self.authority),
        }


@contextmanager
def secured(folder: Path) -> Iterator[Secured]:
    """A running one, ended at the end."""
    one = Secured(folder)
    one.broker.start()
    try:
        yield one
    finally:
        one.broker.kill()


def _certificate(authority: Path) -> str:
    """A key and a certificate for 127.0.0.1, signed by itself, which is written as the authority; PEM."""
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    text = made.public_bytes(serialization.Encoding.PEM).decode()
    authority.write_text(text)
    form = serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()
    return secret + text
