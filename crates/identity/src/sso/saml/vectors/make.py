"""Makes the documents beside it with libxmlsec and libxml2, which know nothing of Tale:

    pip install xmlsec lxml cryptography && python make.py

The keys are thrown away afterwards, except for the one that assertions are encrypted for.
"""

import datetime
import json
import random

import xmlsec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from lxml import etree

SAML, SAMLP = "urn:oasis:names:tc:SAML:2.0:assertion", "urn:oasis:names:tc:SAML:2.0:protocol"
OWN = "https://tale.example.org/api/sso/saml/00000000-0000-7000-8000-000000000001"
EXCLUSIVE = xmlsec.constants.TransformExclC14N


def certificate(name, key):
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    day = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    made = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(day)
        .not_valid_after(day + datetime.timedelta(days=36500)).sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    with open(f"{name}.pem", "wb") as file:
        file.write(pem)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private, pem


def key_of(pair):
    return xmlsec.Key.from_memory(pair[0], xmlsec.constants.KeyDataFormatPem)


ASSERTION = f"""<saml:Assertion xmlns:saml="{SAML}" xmlns:xs="http://www.w3.org/2001/XMLSchema" Version="2.0" ID="_a1" IssueInstant="2026-06-01T12:00:00Z">
  <saml:Issuer>https://idp.example.org/entity</saml:Issuer>
  <saml:Subject>
    <saml:NameID Format="urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress">Zoe@Acme.test</saml:NameID>
    <saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer">
      <saml:SubjectConfirmationData NotOnOrAfter="2026-06-01T12:05:00Z" Recipient="{OWN}/acs" InResponseTo="_question"/>
    </saml:SubjectConfirmation>
  </saml:Subject>
  <saml:Conditions NotBefore="2026-06-01T11:59:00Z" NotOnOrAfter="2026-06-01T12:05:00.500Z">
    <saml:AudienceRestriction><saml:Audience>{OWN}/metadata</saml:Audience></saml:AudienceRestriction>
  </saml:Conditions>
  <saml:AuthnStatement AuthnInstant="2026-06-01T12:00:00Z" SessionIndex="s1">
    <saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef></saml:AuthnContext>
  </saml:AuthnStatement>
  <saml:AttributeStatement xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
    <saml:Attribute Name="name" NameFormat="urn:oasis:names:tc:SAML:2.0:attrname-format:basic"><saml:AttributeValue xsi:type="xs:string">Zo&#235; &amp; &lt;Co&gt; &#x1F984;</saml:AttributeValue></saml:Attribute>
    <saml:Attribute Name="urn:oid:1.3.6.1.4.1.5923.1.5.1.1" FriendlyName="groups">
      <saml:AttributeValue xsi:type="xs:string">laboratory</saml:AttributeValue>
      <saml:AttributeValue xsi:type="xs:string"><![CDATA[Optics & Light]]></saml:AttributeValue>
    </saml:Attribute>
    <saml:Attribute Name="none"/>
  </saml:AttributeStatement>
</saml:Assertion>"""

RESPONSE = f"""<?xml version="1.0" encoding="UTF-8"?>
<!-- made by a provider -->
<samlp:Response xmlns:samlp="{SAMLP}" xmlns="urn:example:other" ID="_r1" Version="2.0" IssueInstant="2026-06-01T12:00:00Z" Destination="{OWN}/acs" InResponseTo="_question">
  <saml:Issuer xmlns:saml="{SAML}">https://idp.example.org/entity</saml:Issuer>
  <samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></samlp:Status>
  %s
</samlp:Response>"""


def sign(element, pair, method, digest=xmlsec.constants.TransformSha256, prefixes=None, canonical=EXCLUSIVE):
    xmlsec.tree.add_ids(element, ["ID"])
    node = xmlsec.template.create(element, canonical, method, ns="ds")
    element.insert(1, node)
    reference = xmlsec.template.add_reference(node, digest, uri="#" + element.get("ID"))
    xmlsec.template.add_transform(reference, xmlsec.constants.TransformEnveloped)
    transform = xmlsec.template.add_transform(reference, canonical)
    if prefixes:
        xmlsec.template.transform_add_c14n_inclusive_namespaces(transform, prefixes)
    xmlsec.template.add_x509_data(xmlsec.template.ensure_key_info(node))
    context = xmlsec.SignatureContext()
    context.key = key_of(pair)
    context.key.load_cert_from_memory(pair[1], xmlsec.constants.KeyDataFormatPem)
    context.sign(node)


def document(*, assertion=None, response=None, encrypt=None):
    root = etree.fromstring((RESPONSE % ASSERTION).encode())
    inner = root.find(f"{{{SAML}}}Assertion")
    if assertion:
        sign(inner, **assertion)
    if encrypt:
        pair, cipher, transport = encrypt
        manager = xmlsec.KeysManager()
        manager.add_key(xmlsec.Key.from_memory(pair[1], xmlsec.constants.KeyDataFormatCertPem))
        template = xmlsec.template.encrypted_data_create(
            root, cipher, type=xmlsec.constants.TypeEncElement, ns="xenc"
        )
        xmlsec.template.encrypted_data_ensure_cipher_value(template)
        info = xmlsec.template.encrypted_data_ensure_key_info(template, ns="ds")
        wrapped = xmlsec.template.add_encrypted_key(info, transport)
        xmlsec.template.encrypted_data_ensure_cipher_value(wrapped)
        context = xmlsec.EncryptionContext(manager)
        bits = 128 if "128" in cipher.href else 256
        context.key = xmlsec.Key.generate(xmlsec.constants.KeyDataAes, bits, xmlsec.constants.KeyDataTypeSession)
        data = context.encrypt_xml(template, inner)
        outer = etree.SubElement(root, f"{{{SAML}}}EncryptedAssertion", nsmap={"saml": SAML})
        outer.append(data)
    if response:
        sign(root, **response)
    return etree.tostring(root.getroottree(), encoding="UTF-8", xml_declaration=True)


def canonical_forms():
    """Random documents with their canonical form by libxml2, as a whole and from an element inside."""
    chance = random.Random(7)
    uris = ["urn:a", "urn:b", "urn:c"]
    words = ["x", "&amp;", "&lt;", "&gt;", '"', "'", "\t", "\n", "\r\n", "&#13;", "&#9;", "&#10;", "\u00e9", "\U0001f984", " "]

    def text(attribute=False):
        chosen = "".join(chance.choice(words) for _ in range(chance.randrange(4)))
        return chosen.replace('"', "&quot;") if attribute else chosen

    def element(depth, scope):
        scope = dict(scope)
        declared = []
        for prefix in chance.sample(["", "p", "q", "r"], chance.randrange(3)):
            uri = chance.choice(uris + ([""] if prefix == "" else []))
            scope[prefix] = uri
            declared.append(f' xmlns{":" + prefix if prefix else ""}="{uri}"')
        prefixes = [prefix for prefix in scope if prefix]
        name = chance.choice(["", *(prefix + ":" for prefix in prefixes)]) + chance.choice(["e", "f"])
        attributes, taken = [], set()
        for prefix in chance.sample(["", "xml", *prefixes], chance.randrange(1 + min(3, len(prefixes)))):
            local = chance.choice(["a", "b", "lang"])
            if (scope.get(prefix, prefix) if prefix else None, local) in taken:
                continue
            taken.add((scope.get(prefix, prefix) if prefix else None, local))
            attributes.append(f' {prefix + ":" if prefix else ""}{local}="{text(True)}"')
        parts = declared + attributes
        chance.shuffle(parts)
        inside = ""
        if depth:
            for _ in range(chance.randrange(4)):
                kind = chance.randrange(5)
                inside += element(depth - 1, scope) if kind < 2 else text() if kind < 4 else chance.choice(
                    ["<!-- & -->", "<![CDATA[<&>]]>"]
                )
        return f"<{name}{''.join(parts)}>{inside}</{name}>" if inside or chance.random() < 0.5 else f"<{name}{''.join(parts)}/>"

    cases = []
    while len(cases) < 200:
        source = element(4, {})
        try:
            root = etree.fromstring(source)
        except etree.XMLSyntaxError:
            continue
        inner = [node for node in root.iter() if isinstance(node.tag, str)]
        if len(inner) < 3:
            continue
        at = chance.randrange(len(inner))
        prefixes = chance.choice([None, ["p"], ["q", "r"], ["#default", "p"]])
        # The whole document is the node set, so that what is in scope around an element counts.
        tree = etree.ElementTree(root)
        plain = etree.tostring(tree, method="c14n", exclusive=True, with_comments=False,
                               inclusive_ns_prefixes=[p for p in prefixes or [] if p != "#default"] or None)
        if prefixes and "#default" in prefixes:
            prefixes = [p for p in prefixes if p != "#default"]
        part = etree.tostring(inner[at], method="c14n", exclusive=True, with_comments=False, with_tail=False)
        cases.append({"source": source, "prefixes": prefixes or [], "whole": plain.decode(), "at": at, "part": part.decode()})
    with open("c14n.json", "w", encoding="utf-8") as file:
        json.dump(cases, file, ensure_ascii=True, indent=0)


def main():
    rsa_pair = certificate("idp", rsa.generate_private_key(public_exponent=65537, key_size=2048))
    p256 = certificate("idp-p256", ec.generate_private_key(ec.SECP256R1()))
    p384 = certificate("idp-p384", ec.generate_private_key(ec.SECP384R1()))
    other = certificate("other", rsa.generate_private_key(public_exponent=65537, key_size=2048))
    own = certificate("sp", rsa.generate_private_key(public_exponent=65537, key_size=2048))
    with open("sp-key.pem", "wb") as file:
        file.write(own[0])
    certificate("short", rsa.generate_private_key(public_exponent=65537, key_size=1024))
    c = xmlsec.constants
    by_rsa = {"pair": rsa_pair, "method": c.TransformRsaSha256}
    oaep = c.TransformRsaOaep
    made = {
        "assertion": document(assertion=by_rsa),
        "assertion-prefixes": document(assertion={**by_rsa, "prefixes": ["xs"]}),
        "assertion-sha512": document(assertion={"pair": rsa_pair, "method": c.TransformRsaSha512, "digest": c.TransformSha512}),
        "response": document(response=by_rsa),
        "both": document(assertion=by_rsa, response=by_rsa),
        "unsigned": document(),
        "p256": document(assertion={"pair": p256, "method": c.TransformEcdsaSha256}),
        "p384": document(assertion={"pair": p384, "method": c.TransformEcdsaSha384, "digest": c.TransformSha384}),
        "sha1": document(assertion={"pair": rsa_pair, "method": c.TransformRsaSha1, "digest": c.TransformSha1}),
        "sha1-digest": document(assertion={**by_rsa, "digest": c.TransformSha1}),
        "inclusive": document(assertion={**by_rsa, "canonical": c.TransformInclC14N}),
        "other-key": document(assertion={"pair": other, "method": c.TransformRsaSha256}),
        "encrypted": document(assertion=by_rsa, encrypt=(own, c.TransformAes256Gcm, oaep)),
        "encrypted-128": document(response=by_rsa, encrypt=(own, c.TransformAes128Gcm, oaep)),
        "encrypted-unsigned": document(encrypt=(own, c.TransformAes256Gcm, oaep)),
        "encrypted-cbc": document(assertion=by_rsa, encrypt=(own, c.TransformAes256Cbc, oaep)),
        "encrypted-pkcs1": document(assertion=by_rsa, encrypt=(own, c.TransformAes256Gcm, c.TransformRsaPkcs1)),
    }
    for name, text in made.items():
        with open(f"{name}.xml", "wb") as file:
            file.write(text)
    canonical_forms()


main()
