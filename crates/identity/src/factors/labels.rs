//! What authenticator apps and files of backup codes are called (MFA-10…14).

use unicode_normalization::UnicodeNormalization;

const PRODUCT: &str = "Tale Platform";

/// The names, from `TOTP_CLIENT_NAME` and `TOTP_ENVIRONMENT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactorLabels {
    /// What an authenticator app shows over its codes.
    pub issuer: String,
    /// The name of a downloaded file of backup codes.
    pub file: String,
}

impl Default for FactorLabels {
    fn default() -> Self {
        Self::new(None, None)
    }
}

impl FactorLabels {
    /// From what the operator wrote. A client called as the product, and the environment of production, add nothing.
    #[must_use]
    pub fn new(client: Option<&str>, environment: Option<&str>) -> Self {
        let client = client.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
        let client = client.filter(|text| !text.is_empty() && !text.eq_ignore_ascii_case("tale"));
        let environment = environment.map(|text| text.trim().to_uppercase());
        let environment = environment.filter(|text| !text.is_empty() && text != "PR");
        let words =
            |pieces: [Option<String>; 3], between| pieces.into_iter().flatten().collect::<Vec<_>>().join(between);
        let slug = client.as_deref().map(folded).filter(|slug| !slug.is_empty());
        let lower = environment.as_deref().map(str::to_lowercase);
        Self {
            file: format!("{}-backup-codes.txt", words([slug, Some("tale-platform".to_owned()), lower], "-")),
            issuer: words([client, Some(PRODUCT.to_owned()), environment], " "),
        }
    }
}

/// Lower-case ASCII letters and digits; whatever has no such form is dropped.
fn folded(text: &str) -> String {
    let mut slug = String::new();
    for c in text.to_lowercase().nfkd() {
        match c {
            'ß' => slug.push_str("ss"),
            'æ' => slug.push_str("ae"),
            'œ' => slug.push_str("oe"),
            'ø' => slug.push('o'),
            'đ' | 'ð' => slug.push('d'),
            'ł' => slug.push('l'),
            'þ' => slug.push_str("th"),
            c if c.is_ascii_alphanumeric() => slug.push(c),
            _ => {}
        }
    }
    slug
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_that_operators_were_promised() {
        for (client, environment, issuer, file) in [
            (None, None, "Tale Platform", "tale-platform-backup-codes.txt"),
            (None, Some("te"), "Tale Platform TE", "tale-platform-te-backup-codes.txt"),
            (None, Some("pr"), "Tale Platform", "tale-platform-backup-codes.txt"),
            (
                Some("Example  plus"),
                Some("preview-42"),
                "Example plus Tale Platform PREVIEW-42",
                "exampleplus-tale-platform-preview-42-backup-codes.txt",
            ),
            (Some("Tale"), Some("te"), "Tale Platform TE", "tale-platform-te-backup-codes.txt"),
            (
                Some("Zürich & Weiß"),
                Some("dv"),
                "Zürich & Weiß Tale Platform DV",
                "zurichweiss-tale-platform-dv-backup-codes.txt",
            ),
            (Some("東京"), None, "東京 Tale Platform", "tale-platform-backup-codes.txt"),
        ] {
            assert_eq!(
                FactorLabels::new(client, environment),
                FactorLabels { issuer: issuer.into(), file: file.into() }
            );
        }
    }
}
