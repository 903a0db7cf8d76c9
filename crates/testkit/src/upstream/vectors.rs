//! Deterministic vectors: texts that share words lie close together.

/// The vector of `text`: its lower-case words hashed into `width` numbers, length 1.
#[must_use]
pub fn hash_vector(text: &str, width: usize) -> Vec<f32> {
    let mut vector = vec![0.0_f32; width];
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        // FNV-1a, 64 bit.
        let hash = word
            .to_lowercase()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        let mixed = hash ^ (hash >> 32);
        let at = usize::try_from(mixed % (width.max(1) as u64)).unwrap_or(0);
        if let Some(number) = vector.get_mut(at) {
            *number += if hash >> 63 == 0 { 1.0 } else { -1.0 };
        }
    }
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|number| *number /= length);
    } else if let Some(first) = vector.first_mut() {
        *first = 1.0;
    }
    vector
}
