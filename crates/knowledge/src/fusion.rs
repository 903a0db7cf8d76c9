//! Reciprocal rank fusion of the two legs (SRCH-6).

use std::collections::HashMap;
use std::hash::Hash;

/// The constant of reciprocal rank fusion.
const K: f32 = 60.0;

/// A candidate after fusion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fused<Id> {
    pub(crate) id: Id,
    /// 0–1; 1 for the first of every leg that found anything.
    pub(crate) score: f32,
    /// Place in the keyword leg, from 0.
    pub(crate) keyword: Option<usize>,
    /// Place in the dense leg, from 0.
    pub(crate) dense: Option<usize>,
}

/// Fuses two rankings, best first. A candidate scores 1/(60 + rank) in each leg that has it, divided
/// by the best possible sum; an empty leg does not lower scores. Equal scores: what the keyword leg
/// ranked comes first, then the lower identity. A repetition within a leg counts once, at its best place.
pub(crate) fn fuse<Id: Copy + Eq + Hash + Ord>(keyword: &[Id], dense: &[Id]) -> Vec<Fused<Id>> {
    let legs = [keyword, dense].iter().filter(|leg| !leg.is_empty()).count();
    if legs == 0 {
        return Vec::new();
    }
    #[expect(clippy::cast_precision_loss, reason = "one or two legs, ranks below a thousand")]
    let (best, share) = (legs as f32 / (K + 1.0), |place: usize| 1.0 / (K + 1.0 + place as f32));
    let mut fused: HashMap<Id, Fused<Id>> = HashMap::with_capacity(keyword.len() + dense.len());
    for (place, id) in keyword.iter().enumerate() {
        let entry = fused.entry(*id).or_insert(Fused { id: *id, score: 0.0, keyword: None, dense: None });
        entry.keyword.get_or_insert(place);
    }
    for (place, id) in dense.iter().enumerate() {
        let entry = fused.entry(*id).or_insert(Fused { id: *id, score: 0.0, keyword: None, dense: None });
        entry.dense.get_or_insert(place);
    }
    let mut list: Vec<Fused<Id>> = fused
        .into_values()
        .map(|entry| {
            let sum: f32 = [entry.keyword, entry.dense].into_iter().flatten().map(share).sum();
            Fused { score: (sum / best).min(1.0), ..entry }
        })
        .collect();
    list.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| b.keyword.is_some().cmp(&a.keyword.is_some()))
            .then_with(|| a.id.cmp(&b.id))
    });
    list
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn first_in_every_leg_scores_one_and_an_empty_leg_does_not_lower_it() {
        assert_eq!(fuse(&[7, 8], &[7, 9])[0].score, 1.0);
        assert_eq!(fuse(&[7, 8], &[])[0].score, 1.0);
        assert_eq!(fuse(&[], &[9])[0].score, 1.0);
        assert!(fuse::<u32>(&[], &[]).is_empty());
    }

    #[test]
    fn equal_scores_put_the_keyword_leg_first_then_the_lower_identity() {
        let order = |keyword: &[u32], dense: &[u32]| fuse(keyword, dense).iter().map(|hit| hit.id).collect::<Vec<_>>();
        assert_eq!(order(&[9], &[1]), [9, 1]);
        assert_eq!(order(&[1, 2], &[2, 1]), [1, 2]);
    }

    fn ranking() -> impl Strategy<Value = Vec<u32>> {
        proptest::collection::hash_set(0u32..400, 0..150).prop_map(|ids| ids.into_iter().collect())
    }

    proptest! {
        #[test]
        fn every_candidate_appears_once_in_order_of_its_score(keyword in ranking(), dense in ranking()) {
            let fused = fuse(&keyword, &dense);
            let mut ids: Vec<u32> = fused.iter().map(|hit| hit.id).collect();
            ids.sort_unstable();
            let mut expected: Vec<u32> = keyword.iter().chain(&dense).copied().collect();
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(ids, expected);
            prop_assert!(fused.windows(2).all(|pair| pair[0].score >= pair[1].score));
            prop_assert!(fused.iter().all(|hit| hit.score > 0.0 && hit.score <= 1.0));
        }

        #[test]
        fn a_better_place_never_lowers_a_score(keyword in ranking(), dense in ranking()) {
            let fused = fuse(&keyword, &dense);
            for a in &fused {
                for b in &fused {
                    let better = |a: Option<usize>, b: Option<usize>| match (a, b) {
                        (Some(a), Some(b)) => a <= b,
                        (Some(_), None) | (None, None) => true,
                        (None, Some(_)) => false,
                    };
                    if better(a.keyword, b.keyword) && better(a.dense, b.dense) {
                        prop_assert!(a.score >= b.score);
                    }
                }
            }
        }

        #[test]
        fn the_answer_depends_on_the_rankings_only(keyword in ranking(), dense in ranking()) {
            prop_assert_eq!(fuse(&keyword, &dense), fuse(&keyword, &dense));
        }
    }
}
