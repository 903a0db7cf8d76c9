//! The shipped providers: data in `catalog/*.json`, embedded into the program (MOD-11).
//!
//! To add a provider, add a file and a line to [`FILES`]. Model ids and prices are what the
//! vendors published when the file was last touched; a missing price means "unknown".

use std::sync::LazyLock;

use crate::definition::Provider;

const FILES: &[(&str, &str)] = &[
    ("openai", include_str!("../catalog/openai.json")),
    ("anthropic", include_str!("../catalog/anthropic.json")),
    ("gemini", include_str!("../catalog/gemini.json")),
    ("deepseek", include_str!("../catalog/deepseek.json")),
    ("moonshot", include_str!("../catalog/moonshot.json")),
    ("qwen", include_str!("../catalog/qwen.json")),
    ("xai", include_str!("../catalog/xai.json")),
    ("zai", include_str!("../catalog/zai.json")),
    ("openrouter", include_str!("../catalog/openrouter.json")),
    ("vercel", include_str!("../catalog/vercel.json")),
    ("azure-openai", include_str!("../catalog/azure-openai.json")),
    ("nous", include_str!("../catalog/nous.json")),
];

static SHIPPED: LazyLock<Vec<Provider>> = LazyLock::new(|| {
    FILES
        .iter()
        .filter_map(|(slug, text)| match serde_json::from_str(text) {
            Ok(provider) => Some(provider),
            // One broken definition does not take the others along (MOD-2); a test keeps them whole.
            Err(error) => {
                tracing::error!(provider = slug, %error, "a shipped provider definition cannot be read");
                None
            }
        })
        .collect()
});

/// The shipped providers, in the order of the page.
#[must_use]
pub fn shipped() -> &'static [Provider] {
    &SHIPPED
}

/// One shipped provider.
#[must_use]
pub fn shipped_provider(slug: &str) -> Option<&'static Provider> {
    SHIPPED.iter().find(|provider| provider.slug == slug)
}

#[cfg(test)]
mod tests {
    use tale_core::net::HostPolicy;

    use super::*;
    use crate::definition::{
        CatalogSource, EmbeddingSupport, EndpointMode, ProviderKind, Purpose, base_url, check_models, is_slug,
    };

    #[test]
    fn every_shipped_definition_is_valid() {
        assert_eq!(shipped().len(), FILES.len());
        for ((file, _), provider) in FILES.iter().zip(shipped()) {
            assert_eq!(*file, provider.slug);
            assert!(is_slug(&provider.slug));
            assert_eq!(provider.kind, ProviderKind::Shipped);
            assert_eq!(
                provider.base_url.is_none(),
                provider.endpoint_mode == Some(EndpointMode::PerCredential),
                "{file}"
            );
            if let Some(url) = &provider.base_url {
                assert_eq!(
                    base_url("baseUrl", url.as_str(), HostPolicy::PublicOnly).unwrap().as_str().trim_end_matches('/'),
                    url.as_str().trim_end_matches('/')
                );
            }
            let mut issues = Vec::new();
            check_models("models", &provider.models, &mut issues);
            assert!(issues.is_empty(), "{file}: {issues:?}");
            assert_eq!(provider.models.is_empty(), provider.catalog_source != CatalogSource::Static, "{file}");
        }
    }

    #[test]
    fn embedding_models_have_a_width_and_stand_where_they_are_supported() {
        for provider in shipped() {
            let vectors: Vec<_> = provider.models.iter().filter(|model| model.serves(Purpose::Embedding)).collect();
            assert_eq!(!vectors.is_empty(), provider.embedding == EmbeddingSupport::Supported, "{}", provider.slug);
            assert!(vectors.iter().all(|model| model.dimensions == Some(1_536)));
        }
    }
}
