//! Waits, counted by their length: buckets of a sixteenth of a power of two, 6 % wide.

/// Bits of a value that tell buckets apart, below the highest.
const FINE: u32 = 4;
/// How many buckets there are: values up to 2^40 ns, some 18 minutes.
pub const BUCKETS: usize = (40 - FINE as usize + 1) << FINE;

/// The bucket of a value.
#[inline]
#[must_use]
pub fn bucket(value: u64) -> usize {
    let value = value.min((1 << 40) - 1);
    if value < 1 << FINE {
        return value as usize;
    }
    let shift = value.ilog2() - FINE;
    ((shift as usize) << FINE) + (value >> shift) as usize
}

/// The middle of a bucket.
#[must_use]
pub fn middle(bucket: usize) -> f64 {
    let fine = 1 << FINE;
    if bucket < 2 * fine {
        return bucket as f64;
    }
    let shift = bucket / fine - 1;
    let least = (bucket % fine + fine) << shift;
    least as f64 + (1_u64 << shift) as f64 / 2.0
}

/// The bucket in which the value lies below which so many thousandths of all values are, from counts
/// by bucket in order; `None` of nothing. In integers, as the guest has it.
#[must_use]
pub fn percentile(
    counts: impl Iterator<Item = (usize, u64)> + Clone,
    thousandths: u64,
) -> Option<usize> {
    let total: u64 = counts.clone().map(|(_, count)| count).sum();
    let mut rank = (total * thousandths / 1000).min(total.saturating_sub(1));
    for (bucket, count) in counts {
        if rank < count {
            return Some(bucket);
        }
        rank -= count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_a_bucket_whose_middle_is_near() {
        let mut last = 0;
        for power in 0..40 {
            for step in 0..64_u64 {
                let value = (1 << power) + (step << power) / 64;
                let bucket = bucket(value);
                assert!(bucket >= last && bucket < BUCKETS, "{value}");
                last = bucket;
                let error = (middle(bucket) - value as f64).abs() / value as f64;
                assert!(error <= 0.07, "{value} is counted as {}", middle(bucket));
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_of_a_known_distribution() {
        let counts = || (0..10).map(|value| (value, 10));
        assert_eq!(percentile(counts(), 0), Some(0));
        assert_eq!(percentile(counts(), 500), Some(5));
        assert_eq!(percentile(counts(), 999), Some(9));
        assert_eq!(percentile(counts(), 1000), Some(9));
        assert_eq!(percentile(core::iter::empty(), 500), None);
    }
}
