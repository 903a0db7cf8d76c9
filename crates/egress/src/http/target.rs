//! What a request asks for.

use super::head::Malformed;
use crate::host::Host;

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Destination {
    pub host: Host,
    pub port: u16,
}

/// The target of CONNECT: a host and a port.
pub(crate) fn authority(target: &str) -> Result<Destination, Malformed> {
    let (host, port) = split_port(target)?;
    Ok(Destination { host: Host::parse(host)?, port: port.ok_or(Malformed::Target)? })
}

/// The target of any other request, `http://host/path`: where it goes, and what to ask there.
pub(crate) fn absolute(target: &str) -> Result<(Destination, String), Malformed> {
    if target.starts_with('/') || target == "*" {
        return Err(Malformed::OriginForm);
    }
    let (scheme, rest) = target.split_once("://").ok_or(Malformed::Target)?;
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(Malformed::Scheme);
    }
    if rest.contains('#') {
        return Err(Malformed::Target);
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (host, port) = split_port(authority)?;
    let destination = Destination { host: Host::parse(host)?, port: port.unwrap_or(80) };
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok((destination, path))
}

/// A host and the port behind it, if there is one. Names of users are refused with the host.
fn split_port(authority: &str) -> Result<(&str, Option<u16>), Malformed> {
    let after_brackets = authority.rfind(']').map_or(0, |end| end + 1);
    let Some(colon) = authority[after_brackets..].find(':') else { return Ok((authority, None)) };
    let (host, port) = authority.split_at(after_brackets + colon);
    let digits = &port[1..];
    let sound = (1..=5).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let port = if sound { digits.parse().ok().filter(|port| *port != 0) } else { None };
    port.map(|port| (host, Some(port))).ok_or(Malformed::Target)
}

impl Destination {
    /// The value of the header Host.
    pub(crate) fn host_field(&self) -> String {
        let host = match &self.host {
            Host::Address(std::net::IpAddr::V6(address)) => format!("[{address}]"),
            host => host.to_string(),
        };
        if self.port == 80 { host } else { format!("{host}:{}", self.port) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_target_names_a_host_and_nothing_that_hides_another() {
        let (to, path) = absolute("http://Example.com:8080/a?b=http://other/").unwrap();
        assert_eq!((to.host_field().as_str(), path.as_str()), ("example.com:8080", "/a?b=http://other/"));
        assert_eq!(absolute("HTTP://example.com?x").unwrap().1, "/?x");
        assert_eq!(absolute("http://[::1]/").unwrap().0.host_field(), "[::1]");
        for target in [
            "http://user@example.com/",
            "http://example.com@10.0.0.1/",
            "http://example.com:80@10.0.0.1/",
            "http://exa%6dple.com/",
            "http:///path",
            "http://:80/",
            "http://example.com:/",
            "http://example.com:0/",
            "http://example.com:65536/",
            "http://example.com:+80/",
            "http://example.com\\@10.0.0.1/",
            "http://example.com#@10.0.0.1/",
            "http://[::1]x:80/",
            "http:example.com/",
            "example.com",
        ] {
            assert!(absolute(target).is_err(), "{target}");
        }
        assert_eq!(absolute("https://example.com/"), Err(Malformed::Scheme));
        assert_eq!(absolute("/path"), Err(Malformed::OriginForm));
        assert_eq!(absolute("//example.com/"), Err(Malformed::OriginForm));
        for target in ["example.com", "example.com:", "http://example.com:443", "example.com:443/", "a:b:443", "[::1]"]
        {
            assert!(authority(target).is_err(), "{target}");
        }
        assert_eq!(authority("[2606:4700::1111]:443").unwrap().port, 443);
    }

    proptest! {
        /// What is sent on reads as the same destination: no writer and reader disagree.
        #[test]
        fn the_host_that_is_sent_on_is_the_host_that_was_judged(target in "http://[a-zA-Z0-9.:@\\[\\]%/?#\\\\-]{0,30}") {
            if let Ok((to, path)) = absolute(&target) {
                let again = absolute(&format!("http://{}{path}", to.host_field())).unwrap();
                prop_assert_eq!(again, (to, path));
            }
        }
    }
}
