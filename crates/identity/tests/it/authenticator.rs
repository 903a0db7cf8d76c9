//! What a passkey and an authenticator app do, in the tests' own words.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::json;
use tale_core::crypto::{hmac_sha1, sha256};
use tale_identity::factors::{NewPasskey, PasskeyAnswer};

/// The code of an app that was given `secret` (Base32), with a clock that is `steps` of 30 seconds ahead.
pub fn totp(secret: &str, now: DateTime<Utc>, steps: i64) -> String {
    let mut bits = 0u64;
    let mut held = 0;
    let mut key = Vec::new();
    for c in secret.bytes() {
        let value = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".iter().position(|known| *known == c).unwrap();
        bits = bits << 5 | value as u64;
        held += 5;
        if held >= 8 {
            held -= 8;
            key.push((bits >> held) as u8);
        }
    }
    let mac = hmac_sha1(&key, &(now.timestamp() / 30 + steps).to_be_bytes());
    let at = usize::from(mac[19] & 15);
    let word = u32::from_be_bytes(mac[at..at + 4].try_into().unwrap()) & 0x7fff_ffff;
    format!("{:06}", word % 1_000_000)
}

/// A device with one passkey of P-256, which signs whatever it is told to.
pub struct Authenticator {
    pub key: EcdsaKeyPair,
    pub random: SystemRandom,
    pub credential: Vec<u8>,
    pub party: String,
    pub origin: String,
    pub flags: u8,
    pub count: u32,
}

impl Authenticator {
    pub fn new(party: &str, origin: &str) -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref(), &random).unwrap();
        let credential = sha256(key.public_key().as_ref())[..16].to_vec();
        Self { key, random, credential, party: party.into(), origin: origin.into(), flags: 0x05, count: 0 }
    }

    fn client_data(&self, kind: &str, challenge: &str) -> Vec<u8> {
        serde_json::to_vec(
            &json!({ "type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": false }),
        )
        .unwrap()
    }

    fn data(&self, flags: u8) -> Vec<u8> {
        [&sha256(self.party.as_bytes())[..], &[flags], &self.count.to_be_bytes()].concat()
    }

    pub fn make(&self, name: &str, challenge: &str) -> NewPasskey {
        let point = self.key.public_key().as_ref();
        // {1: 2, 3: -7, -1: 1, -2: x, -3: y}
        let cose =
            [&b"\xa5\x01\x02\x03\x26\x20\x01\x21\x58\x20"[..], &point[1..33], b"\x22\x58\x20", &point[33..]].concat();
        let data =
            [&self.data(self.flags | 0x40)[..], &[0; 16], &[0, self.credential.len() as u8], &self.credential, &cose]
                .concat();
        // {"fmt": "none", "attStmt": {}, "authData": …}
        let attestation =
            [&b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58"[..], &[data.len() as u8], &data].concat();
        NewPasskey {
            name: name.into(),
            client_data: self.client_data("webauthn.create", challenge),
            attestation,
            transports: vec!["internal".into(), "made up".into()],
        }
    }

    pub fn answer(&mut self, challenge: &str) -> PasskeyAnswer {
        self.count += 1;
        self.answer_as_counted(challenge)
    }

    /// An answer without counting on.
    pub fn answer_as_counted(&self, challenge: &str) -> PasskeyAnswer {
        let (data, client_data) = (self.data(self.flags), self.client_data("webauthn.get", challenge));
        let message = [&data[..], &sha256(&client_data)].concat();
        PasskeyAnswer {
            credential: self.credential.clone(),
            client_data,
            authenticator_data: data,
            signature: self.key.sign(&self.random, &message).unwrap().as_ref().to_vec(),
            user: None,
        }
    }
}

/// A challenge with one bit of it changed.
pub fn forged(challenge: &str) -> String {
    let mut bytes = URL_SAFE_NO_PAD.decode(challenge).unwrap();
    bytes[0] ^= 1;
    URL_SAFE_NO_PAD.encode(bytes)
}
