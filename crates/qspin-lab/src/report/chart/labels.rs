//! Labels at the ends of lines, moved apart until none covers another.

/// Places labels of one height as near as possible to where they want to be, in their order and
/// between `top` and `bottom`; returns a place for each, in the order of the input.
///
/// Neighbours that would overlap form a block which sits at the mean of its members' wishes:
/// the classic pool-adjacent-violators, so no label is pushed further than needed.
#[must_use]
pub fn spread(wishes: &[f64], height: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wishes.len()).collect();
    order.sort_by(|&a, &b| wishes[a].total_cmp(&wishes[b]).then(a.cmp(&b)));
    // Too many for the space: closer together, rather than outside the picture.
    let room = (bottom - top) / (wishes.len().max(2) - 1) as f64;
    let height = height.min(room);

    /// Members `first..first + count` of the order; `start` is where the first one sits.
    struct Block {
        first: usize,
        count: usize,
        start: f64,
    }
    let mut blocks: Vec<Block> = Vec::new();
    let settle = |first: usize, count: usize| {
        let sum: f64 = (0..count).map(|i| wishes[order[first + i]] - i as f64 * height).sum();
        let last = bottom - (count - 1) as f64 * height;
        (sum / count as f64).min(last).max(top)
    };
    for first in 0..order.len() {
        let mut block = Block { first, count: 1, start: settle(first, 1) };
        while let Some(above) = blocks.last() {
            if above.start + above.count as f64 * height <= block.start + 1e-9 {
                break;
            }
            block = Block {
                first: above.first,
                count: above.count + block.count,
                start: settle(above.first, above.count + block.count),
            };
            blocks.pop();
        }
        blocks.push(block);
    }
    let mut places = vec![0.0; wishes.len()];
    for block in blocks {
        for i in 0..block.count {
            places[order[block.first + i]] = block.start + i as f64 * height;
        }
    }
    places
}

/// A name cut to a number of characters, with an ellipsis in the middle: forms of the same lock
/// differ at the end.
#[must_use]
pub fn cut(name: &str, most: usize) -> String {
    let length = name.chars().count();
    if length <= most {
        return name.to_owned();
    }
    let left = most.saturating_sub(1);
    let head: String = name.chars().take(left / 3).collect();
    let tail: String = name.chars().skip(length - (left - left / 3)).collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart(places: &[f64], height: f64) -> bool {
        let mut sorted = places.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.windows(2).all(|pair| pair[1] - pair[0] >= height - 1e-6)
    }

    #[test]
    fn labels_with_room_stay_where_they_are() {
        assert_eq!(spread(&[10.0, 50.0, 90.0], 12.0, 0.0, 100.0), [10.0, 50.0, 90.0]);
    }

    #[test]
    fn crowded_labels_share_the_push() {
        let places = spread(&[50.0, 50.0], 10.0, 0.0, 100.0);
        assert_eq!(places, [45.0, 55.0]);
    }

    #[test]
    fn never_outside_and_never_overlapping() {
        let wishes: Vec<f64> = (0..17).map(|i| if i < 14 { 3.0 } else { 297.0 }).collect();
        let places = spread(&wishes, 14.0, 0.0, 300.0);
        assert!(apart(&places, 14.0), "{places:?}");
        assert!(places.iter().all(|place| (0.0..=300.0).contains(place)));
    }

    #[test]
    fn too_many_labels_come_closer() {
        let places = spread(&[0.0; 40], 14.0, 0.0, 100.0);
        assert!(apart(&places, 100.0 / 39.0));
        assert!(places.iter().all(|place| (0.0..=100.01).contains(place)));
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(cut("native", 10), "native");
        assert_eq!(cut("native [loops=512]", 11), "nat…ps=512]");
        let levels = [1, 2].map(|level| cut(&format!("paravirt-queued [kick_ahead={level}]"), 20));
        assert_eq!(levels, ["paravi…kick_ahead=1]", "paravi…kick_ahead=2]"]);
    }
}
