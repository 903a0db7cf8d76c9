//! Environment files of any shape.

use proptest::prelude::*;
use tale_env::file::{EnvFile, quoted};

proptest! {
    #[test]
    fn no_text_makes_the_parser_fall_over(text in "\\PC*|[A-Z=:'\"\\\\${}#\\-?+ \t\r\n]{0,60}") {
        let file = EnvFile::parse(&text, &|name| (name.len() % 2 == 0).then(|| "x".to_owned()));
        for entry in &file.entries {
            prop_assert!(entry.line >= 1 && entry.line <= text.lines().count().max(1));
        }
    }

    #[test]
    fn a_quoted_value_reads_as_itself(values in proptest::collection::vec("\\PC*|[a-z'\"\\\\$#{} \n\r\t=]{0,30}", 0..8)) {
        let mut text = String::new();
        for (index, value) in values.iter().enumerate() {
            text.push_str(&format!("V{index}={}\n", quoted(value)));
        }
        let file = EnvFile::parse(&text, &|_| None);
        prop_assert_eq!(&file.problems, &[]);
        for (index, value) in values.iter().enumerate() {
            prop_assert_eq!(file.get(&format!("V{index}")), Some(value.as_str()));
        }
    }

    #[test]
    fn what_stands_between_does_not_disturb_the_rest(noise in "[a-zA-Z0-9 =#$-]{0,40}") {
        let file = EnvFile::parse(&format!("A=1\n{noise}\nZ9=2\n"), &|_| None);
        prop_assert_eq!(file.get("Z9"), Some("2"));
    }
}
