//! Images and documents of a request: what is refused, and what they count for.

use memchr::memmem;
use serde_json::Value;
use tale_core::problem::Problem;

use crate::wire::Wire;

use super::pages;

/// Tokens that an image counts for: about what the largest one costs.
const IMAGE_TOKENS: u64 = 1_600;

/// The images and documents of a request.
#[derive(Debug, Default)]
pub(super) struct Media {
    /// Whether there are images.
    pub(super) images: bool,
    /// Bytes of encoded data, which are no text.
    pub(super) bytes: u64,
    /// What images and documents count for.
    pub(super) tokens: u64,
}

impl Media {
    /// Reads a list of messages. What holds none of the words that name such parts is not parsed.
    pub(super) fn of(wire: Wire, messages: &str) -> Result<Self, Problem> {
        const WORDS: [&str; 8] =
            ["\"image", "\"input_video", "\"file", "\"document", "\"input_audio", "\"audio_url", "\"video", "\\u00"];
        let mut media = Self::default();
        if !WORDS.iter().any(|word| memmem::find(messages.as_bytes(), word.as_bytes()).is_some()) {
            return Ok(media);
        }
        let list: Value = serde_json::from_str(messages).map_err(|_| super::unreadable("messages"))?;
        // The prompt of a Responses request may be one text.
        let Value::Array(list) = list else { return Ok(media) };
        for (at, message) in list.iter().enumerate() {
            if wire == Wire::Responses {
                media.parts(wire, &format!("input.{at}.content"), &message["content"])?;
                let path = format!("input.{at}.output");
                media.parts(wire, &path, &message["output"])?;
                if message["output"].is_object() {
                    media.responses(&path, &message["output"])?;
                }
            } else {
                media.parts(wire, &format!("messages.{at}.content"), &message["content"])?;
            }
        }
        Ok(media)
    }

    fn parts(&mut self, wire: Wire, path: &str, parts: &Value) -> Result<(), Problem> {
        for (at, part) in parts.as_array().into_iter().flatten().enumerate() {
            let path = format!("{path}.{at}");
            match wire {
                Wire::Chat => self.openai(&path, part)?,
                Wire::Responses => self.responses(&path, part)?,
                Wire::Messages => self.anthropic(&path, part)?,
            }
        }
        Ok(())
    }

    fn openai(&mut self, path: &str, part: &Value) -> Result<(), Problem> {
        match part["type"].as_str() {
            Some("image_url") => {
                let url = part["image_url"]["url"].as_str().unwrap_or_default();
                self.image(&format!("{path}.image_url.url"), url)?;
            }
            Some("file") => {
                let file = &part["file"];
                if !file["file_id"].is_null() {
                    return Err(stored(&format!("{path}.file.file_id")));
                }
                let data = file["file_data"].as_str().unwrap_or_default();
                if data.contains("://") {
                    return Err(Problem::invalid_field(
                        &format!("{path}.file.file_data"),
                        "must be the document itself, as a `data:` address or base64",
                    ));
                }
                self.document(data);
            }
            Some("input_audio" | "audio_url" | "video_url" | "video") => {
                return Err(Problem::invalid_field(
                    path,
                    "must not be audio or video: text, images and documents are read here",
                ));
            }
            _ => {}
        }
        Ok(())
    }

    fn responses(&mut self, path: &str, part: &Value) -> Result<(), Problem> {
        if !part["file_id"].is_null() {
            return Err(stored(&format!("{path}.file_id")));
        }
        match part["type"].as_str() {
            // what the same wire reads there, and an output of a `computer` tool
            Some("input_image" | "computer_screenshot") => {
                self.image(&format!("{path}.image_url"), part["image_url"].as_str().unwrap_or_default())?;
            }
            Some("input_file") => {
                if let Some(url) = part["file_url"].as_str() {
                    https(&format!("{path}.file_url"), url)?;
                    self.tokens += pages::UNKNOWN;
                }
                if let Some(data) = part["file_data"].as_str() {
                    self.document(data);
                }
            }
            Some("input_audio" | "input_video") => {
                return Err(Problem::invalid_field(
                    path,
                    "must not be audio or video: text, images and documents are read here",
                ));
            }
            _ => {}
        }
        Ok(())
    }

    fn anthropic(&mut self, path: &str, block: &Value) -> Result<(), Problem> {
        let source = &block["source"];
        match block["type"].as_str() {
            Some("image") => match source["type"].as_str() {
                Some("base64") => {
                    self.data(source["data"].as_str().unwrap_or_default().len());
                    self.count_image();
                }
                Some("url") => self.image(&format!("{path}.source.url"), source["url"].as_str().unwrap_or_default())?,
                Some("file") => return Err(stored(&format!("{path}.source"))),
                _ => {
                    return Err(Problem::invalid_field(
                        &format!("{path}.source.type"),
                        "must be one of \"base64\", \"url\"",
                    ));
                }
            },
            Some("document") => match source["type"].as_str() {
                Some("file") => return Err(stored(&format!("{path}.source"))),
                Some("content") => self.parts(Wire::Messages, &format!("{path}.source.content"), &source["content"])?,
                Some("text") => {}
                Some("url") => {
                    https(&format!("{path}.source.url"), source["url"].as_str().unwrap_or_default())?;
                    // The provider fetches it itself.
                    self.tokens += pages::UNKNOWN;
                }
                _ => self.document(source["data"].as_str().unwrap_or_default()),
            },
            Some("container_upload") => return Err(stored(path)),
            Some("tool_result") => self.parts(Wire::Messages, &format!("{path}.content"), &block["content"])?,
            _ => {}
        }
        Ok(())
    }

    fn image(&mut self, path: &str, url: &str) -> Result<(), Problem> {
        let scheme = url.split(':').next().unwrap_or_default();
        if scheme.eq_ignore_ascii_case("data") {
            self.data(url.len());
        } else if !scheme.eq_ignore_ascii_case("https") {
            return Err(Problem::invalid_field(path, "must be a `data:` or `https:` address"));
        }
        self.count_image();
        Ok(())
    }

    fn count_image(&mut self) {
        self.images = true;
        self.tokens += IMAGE_TOKENS;
    }

    fn document(&mut self, data: &str) {
        self.data(data.len());
        self.tokens += pages::tokens(data).max(IMAGE_TOKENS);
    }

    fn data(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }
}

fn https(path: &str, url: &str) -> Result<(), Problem> {
    if url.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://")) {
        return Ok(());
    }
    Err(Problem::invalid_field(path, "must be an `https:` address"))
}

fn stored(path: &str) -> Problem {
    Problem::invalid_field(path, "must not name a file that is stored at the provider: send the file itself")
}
