//! Elementary functions that give the same bits on every platform. Those of `std` come from the
//! system's C library, whose last bit varies, but a suggestion must be reproducible.

/// Functions of `libm`, in pure Rust. Their names are long because `std` has taken the short ones.
pub trait Portable {
    /// The exponential.
    fn exponential(self) -> f64;
    /// The natural logarithm.
    fn logarithm(self) -> f64;
    /// The natural logarithm of 1 plus this number.
    fn logarithm_1p(self) -> f64;
    /// This number raised to a power.
    fn power(self, exponent: f64) -> f64;
    /// The sine and cosine of an angle.
    fn sine_cosine(self) -> (f64, f64);
}

impl Portable for f64 {
    fn exponential(self) -> f64 {
        libm::exp(self)
    }

    fn logarithm(self) -> f64 {
        libm::log(self)
    }

    fn logarithm_1p(self) -> f64 {
        libm::log1p(self)
    }

    fn power(self, exponent: f64) -> f64 {
        libm::pow(self, exponent)
    }

    fn sine_cosine(self) -> (f64, f64) {
        libm::sincos(self)
    }
}

/// The standard normal distribution function.
pub fn normal_cdf(z: f64) -> f64 {
    libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2) / 2.0
}

/// The standard normal density.
pub fn normal_pdf(z: f64) -> f64 {
    const OF_ZERO: f64 = 0.398_942_280_401_432_7;
    OF_ZERO * libm::exp(-z * z / 2.0)
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{Continuous, ContinuousCDF, Normal};

    use super::*;

    #[test]
    fn the_normal_distribution_is_that_of_statrs() {
        let normal = Normal::standard();
        for step in -800..=800 {
            let z = f64::from(step) / 100.0;
            let (cdf, pdf) = (normal.cdf(z), normal.pdf(z));
            assert!((normal_cdf(z) - cdf).abs() <= 1e-10, "cdf at {z}");
            assert!((normal_pdf(z) - pdf).abs() <= 1e-12 * pdf, "pdf at {z}");
        }
    }
}
