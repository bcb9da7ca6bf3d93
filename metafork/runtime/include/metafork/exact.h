/* Exact arithmetic on the host: the sign of a polynomial, quotients and extrema of polynomials, checked 64-bit steps.
 *
 * A polynomial is a table of terms over a vector of 64-bit values: the conditions of a tree are data, so that no name of
 * the input becomes an identifier.  The sum is formed in 128 bits, watched by bit lengths; where that could overflow, the
 * positive and the negative terms are summed in integers of METAFORK_EXACT_LIMBS 64-bit limbs and compared.  C11 and C++.
 */
#ifndef METAFORK_EXACT_H
#define METAFORK_EXACT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { METAFORK_MAX_DEGREE = 15, METAFORK_EXACT_LIMBS = METAFORK_MAX_DEGREE + 3 };

typedef struct metafork_term {
    int64_t coefficient;
    uint8_t degree;
    uint8_t factor[METAFORK_MAX_DEGREE]; /* positions in the vector of values */
} metafork_term;

typedef struct metafork_polynomial {
    const metafork_term *terms;
    int count;
} metafork_polynomial;

static inline metafork_polynomial metafork_polynomial_of(const metafork_term *terms, int count) {
    const metafork_polynomial polynomial = {terms, count};
    return polynomial;
}

__extension__ typedef __int128 metafork_int128;
__extension__ typedef unsigned __int128 metafork_uint128;

static inline uint64_t metafork_magnitude(int64_t value) { return value < 0 ? -(uint64_t)value : (uint64_t)value; }

static inline int metafork_bits(uint64_t magnitude) { return magnitude == 0 ? 0 : 64 - __builtin_clzll(magnitude); }

/* The value of a polynomial where every step stays below 2^126; returns whether it does. */
static inline int metafork_value_small(metafork_polynomial polynomial, const int64_t *values, metafork_int128 *out) {
    metafork_int128 sum = 0;
    int i, j;
    for (i = 0; i < polynomial.count; i++) {
        const metafork_term *term = &polynomial.terms[i];
        metafork_int128 product = term->coefficient;
        int bits = metafork_bits(metafork_magnitude(term->coefficient));
        metafork_uint128 size;
        for (j = 0; j < term->degree; j++) {
            const int64_t value = values[term->factor[j]];
            bits += metafork_bits(metafork_magnitude(value));
            if (bits > 126) return 0;
            product *= value;
        }
        sum += product;
        size = sum < 0 ? -(metafork_uint128)sum : (metafork_uint128)sum;
        if (size >> 126 != 0) return 0;
    }
    *out = sum;
    return 1;
}

/* A nonnegative integer, least significant limb first. */
typedef struct metafork_natural {
    uint64_t limb[METAFORK_EXACT_LIMBS];
} metafork_natural;

static inline void metafork_natural_scale(metafork_natural *number, uint64_t factor) {
    metafork_uint128 carry = 0;
    int i;
    for (i = 0; i < METAFORK_EXACT_LIMBS; i++) {
        carry += (metafork_uint128)number->limb[i] * factor;
        number->limb[i] = (uint64_t)carry;
        carry >>= 64;
    }
}

static inline void metafork_natural_add(metafork_natural *number, const metafork_natural *other) {
    metafork_uint128 carry = 0;
    int i;
    for (i = 0; i < METAFORK_EXACT_LIMBS; i++) {
        carry += (metafork_uint128)number->limb[i] + other->limb[i];
        number->limb[i] = (uint64_t)carry;
        carry >>= 64;
    }
}

/* Add scale * polynomial to *positive - *negative.  scale is an integer of at most 63 bits. */
static inline void metafork_accumulate(metafork_polynomial polynomial, const int64_t *values, int64_t scale,
                                       metafork_natural *positive, metafork_natural *negative) {
    int i, j;
    for (i = 0; i < polynomial.count; i++) {
        const metafork_term *term = &polynomial.terms[i];
        metafork_natural product;
        int minus = (term->coefficient < 0) != (scale < 0);
        memset(&product, 0, sizeof product);
        product.limb[0] = metafork_magnitude(term->coefficient);
        metafork_natural_scale(&product, metafork_magnitude(scale));
        for (j = 0; j < term->degree; j++) {
            const int64_t value = values[term->factor[j]];
            minus ^= value < 0;
            metafork_natural_scale(&product, metafork_magnitude(value));
        }
        metafork_natural_add(minus ? negative : positive, &product);
    }
}

static inline int metafork_natural_compare(const metafork_natural *left, const metafork_natural *right) {
    int i;
    for (i = METAFORK_EXACT_LIMBS - 1; i >= 0; i--)
        if (left->limb[i] != right->limb[i]) return left->limb[i] < right->limb[i] ? -1 : 1;
    return 0;
}

/* The sign of scale_a * a + scale_b * b: -1, 0 or 1, exact for any values. */
static inline int metafork_sign_of_sum(metafork_polynomial a, int64_t scale_a, metafork_polynomial b, int64_t scale_b,
                                       const int64_t *values) {
    metafork_natural positive, negative;
    memset(&positive, 0, sizeof positive);
    memset(&negative, 0, sizeof negative);
    metafork_accumulate(a, values, scale_a, &positive, &negative);
    metafork_accumulate(b, values, scale_b, &positive, &negative);
    return metafork_natural_compare(&positive, &negative);
}

/* The sign of a polynomial: -1, 0 or 1, exact for any values. */
static inline int metafork_sign(metafork_polynomial polynomial, const int64_t *values) {
    const metafork_polynomial nothing = {NULL, 0};
    metafork_int128 value;
    if (metafork_value_small(polynomial, values, &value)) return value < 0 ? -1 : value > 0;
    return metafork_sign_of_sum(polynomial, 1, nothing, 0, values);
}

/* floor(numerator / denominator) for numerator >= 0 and denominator >= 1; otherwise, or where it exceeds 63 bits, *failed
 * is set and the result is 0. */
static inline int64_t metafork_floor(metafork_polynomial numerator, metafork_polynomial denominator, const int64_t *values, int *failed) {
    metafork_int128 n, d;
    int64_t quotient = 0;
    int bit;
    if (metafork_sign(denominator, values) <= 0 || metafork_sign(numerator, values) < 0) {
        *failed = 1;
        return 0;
    }
    if (metafork_value_small(numerator, values, &n) && metafork_value_small(denominator, values, &d)) {
        n /= d;
        if (n <= INT64_MAX) return (int64_t)n;
        *failed = 1;
        return 0;
    }
    /* The greatest q with numerator - q * denominator >= 0, bit by bit. */
    for (bit = 62; bit >= 0; bit--) {
        const int64_t candidate = quotient | (INT64_C(1) << bit);
        if (metafork_sign_of_sum(numerator, 1, denominator, -candidate, values) >= 0) quotient = candidate;
    }
    /* Where 2^63 fits too, the quotient is too large: numerator - INT64_MAX*d >= d. */
    if (quotient == INT64_MAX) {
        metafork_natural positive, negative;
        memset(&positive, 0, sizeof positive);
        memset(&negative, 0, sizeof negative);
        metafork_accumulate(numerator, values, 1, &positive, &negative);
        metafork_accumulate(denominator, values, -INT64_MAX, &positive, &negative);
        metafork_accumulate(denominator, values, -1, &positive, &negative);
        if (metafork_natural_compare(&positive, &negative) >= 0) {
            *failed = 1;
            return 0;
        }
    }
    return quotient;
}

/* ceiling(numerator / denominator), as metafork_floor. */
static inline int64_t metafork_ceiling(metafork_polynomial numerator, metafork_polynomial denominator, const int64_t *values, int *failed) {
    const int64_t below = metafork_floor(numerator, denominator, values, failed);
    if (*failed || metafork_sign_of_sum(numerator, 1, denominator, -below, values) == 0) return below;
    if (below == INT64_MAX) {
        *failed = 1;
        return 0;
    }
    return below + 1;
}

/* numerator / divisor for a divisor >= 1, toward zero; *failed is set where it exceeds 64 bits. */
static inline int64_t metafork_value(metafork_polynomial polynomial, int64_t divisor, const int64_t *values, int *failed) {
    metafork_int128 value;
    if (metafork_value_small(polynomial, values, &value)) {
        value /= divisor;
        if (value >= INT64_MIN && value <= INT64_MAX) return (int64_t)value;
    } else {
        /* Terms may cancel: the magnitude is found bit by bit. */
        const int sign = metafork_sign(polynomial, values) < 0 ? -1 : 1;
        metafork_term scaled_term = {0, 0, {0}};
        metafork_polynomial scaled;
        int64_t magnitude = 0;
        int bit;
        scaled_term.coefficient = divisor;
        scaled.terms = &scaled_term;
        scaled.count = 1;
        for (bit = 62; bit >= 0; bit--) {
            const int64_t candidate = magnitude | (INT64_C(1) << bit);
            if (metafork_sign_of_sum(polynomial, sign, scaled, -candidate, values) >= 0) magnitude = candidate;
        }
        if (magnitude != INT64_MAX) return sign * magnitude;
    }
    *failed = 1;
    return 0;
}

/* The greatest (direction 1) or least (direction -1) of polynomials, each divided by divisor >= 1. */
static inline int64_t metafork_extremum(int direction, const metafork_polynomial *operands, int count, int64_t divisor,
                                        const int64_t *values, int *failed) {
    int best = 0, i;
    for (i = 1; i < count; i++)
        if (metafork_sign_of_sum(operands[i], 1, operands[best], -1, values) == direction) best = i;
    return metafork_value(operands[best], divisor, values, failed);
}

typedef enum metafork_relation { METAFORK_AT_MOST, METAFORK_LESS, METAFORK_EQUAL } metafork_relation;

/* left relation right; the text is for messages. */
typedef struct metafork_condition {
    metafork_polynomial left;
    metafork_relation relation;
    metafork_polynomial right;
    const char *text;
} metafork_condition;

static inline int metafork_holds(const metafork_condition *condition, const int64_t *values) {
    metafork_int128 left, right;
    int sign;
    if (metafork_value_small(condition->left, values, &left) && metafork_value_small(condition->right, values, &right))
        sign = left < right ? -1 : left > right;
    else
        sign = metafork_sign_of_sum(condition->left, 1, condition->right, -1, values);
    switch (condition->relation) {
    case METAFORK_AT_MOST: return sign <= 0;
    case METAFORK_LESS: return sign < 0;
    default: return sign == 0;
    }
}

/* An inner node of a tree: its condition, and where to go where it holds and where not.  A place is a leaf's number, 0 for
 * none, or -1 - i for node i. */
typedef struct metafork_node {
    int condition;
    int accept;
    int refuse;
} metafork_node;

static inline int metafork_walk(const metafork_node *nodes, const metafork_condition *conditions, int place, const int64_t *values) {
    while (place < 0) {
        const metafork_node *node = &nodes[-1 - place];
        place = metafork_holds(&conditions[node->condition], values) ? node->accept : node->refuse;
    }
    return place;
}

/* ---- checked steps: the C expressions that the host computes; *failed is set where 64 bits do not suffice ---- */

static inline int64_t metafork_add(int *failed, int64_t left, int64_t right) {
    int64_t result;
    if (__builtin_add_overflow(left, right, &result)) *failed = 1;
    return result;
}

static inline int64_t metafork_subtract(int *failed, int64_t left, int64_t right) {
    int64_t result;
    if (__builtin_sub_overflow(left, right, &result)) *failed = 1;
    return result;
}

static inline int64_t metafork_multiply(int *failed, int64_t left, int64_t right) {
    int64_t result;
    if (__builtin_mul_overflow(left, right, &result)) *failed = 1;
    return result;
}

static inline int64_t metafork_divide(int *failed, int64_t left, int64_t right) {
    if (right == 0 || (left == INT64_MIN && right == -1)) {
        *failed = 1;
        return 0;
    }
    return left / right;
}

static inline int64_t metafork_remainder(int *failed, int64_t left, int64_t right) {
    if (right == 0 || (left == INT64_MIN && right == -1)) {
        *failed = 1;
        return 0;
    }
    return left % right;
}

static inline int64_t metafork_shift_left(int *failed, int64_t left, int64_t right) {
    if (left < 0 || right < 0 || right > 62 || left > INT64_MAX >> right) {
        *failed = 1;
        return 0;
    }
    return left << right;
}

static inline int64_t metafork_shift_right(int *failed, int64_t left, int64_t right) {
    if (right < 0 || right > 63) {
        *failed = 1;
        return 0;
    }
    return left >> right;
}

/* The value itself where least <= value <= most. */
static inline int64_t metafork_within(int *failed, int64_t value, int64_t least, int64_t most) {
    if (value < least || value > most) {
        *failed = 1;
        return 0;
    }
    return value;
}

/* A floating value converted to an integer, as C truncates it. */
static inline int64_t metafork_truncate(int *failed, double value) {
    if (!(value > -9223372036854775808.0 && value < 9223372036854775808.0)) {
        *failed = 1;
        return 0;
    }
    return (int64_t)value;
}

/* The same in generated text, where a step that fails sets the variable metafork_failed. */
#define METAFORK_ADD(left, right) metafork_add(&metafork_failed, left, right)
#define METAFORK_SUB(left, right) metafork_subtract(&metafork_failed, left, right)
#define METAFORK_MUL(left, right) metafork_multiply(&metafork_failed, left, right)
#define METAFORK_DIV(left, right) metafork_divide(&metafork_failed, left, right)
#define METAFORK_REM(left, right) metafork_remainder(&metafork_failed, left, right)
#define METAFORK_SHL(left, right) metafork_shift_left(&metafork_failed, left, right)
#define METAFORK_SHR(left, right) metafork_shift_right(&metafork_failed, left, right)
#define METAFORK_INT(value) metafork_within(&metafork_failed, value, INT32_MIN, INT32_MAX)
#define METAFORK_WITHIN(value, least, most) metafork_within(&metafork_failed, value, least, most)

#endif
