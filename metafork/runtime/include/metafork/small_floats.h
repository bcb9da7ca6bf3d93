/* Floating-point numbers of 16 bits in memory: IEEE 754's (half) and bfloat16.  C and C++, on the host and in kernels.
 *
 *   metafork_from_half(bits), metafork_from_bfloat16(bits)      the value as a float, exactly
 *   metafork_to_half(value), metafork_to_bfloat16(value)        the nearest one, of two the even one; a NaN is 0x7fff
 *   metafork_half, metafork_bfloat16                            (C) what arrays of them consist of: the compiler's type, if it
 *                                                               has one, or else a structure that can only be copied
 *
 * Host and devices compute the same bits.
 */
#ifndef METAFORK_SMALL_FLOATS_H
#define METAFORK_SMALL_FLOATS_H

#if defined(__CUDACC__)
#define METAFORK_ANYWHERE static __host__ __device__ __forceinline__
#elif defined(METAFORK_HIP)
#define METAFORK_ANYWHERE static __host__ __device__ inline
#else
#define METAFORK_ANYWHERE static inline __attribute__((unused))
#endif

METAFORK_ANYWHERE float metafork_float_of(unsigned int metafork_bits) {
#if defined(__CUDA_ARCH__)
    return __uint_as_float(metafork_bits);
#else
    float metafork_value;
    __builtin_memcpy(&metafork_value, &metafork_bits, sizeof metafork_value);
    return metafork_value;
#endif
}

METAFORK_ANYWHERE unsigned int metafork_bits_of(float metafork_value) {
#if defined(__CUDA_ARCH__)
    return __float_as_uint(metafork_value);
#else
    unsigned int metafork_bits;
    __builtin_memcpy(&metafork_bits, &metafork_value, sizeof metafork_bits);
    return metafork_bits;
#endif
}

METAFORK_ANYWHERE float metafork_from_half(unsigned short metafork_half_bits) {
#if defined(__CUDA_ARCH__)
    float metafork_value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(metafork_value) : "h"(metafork_half_bits));
    return metafork_value;
#else
    const unsigned int metafork_sign = (metafork_half_bits & 0x8000u) << 16, metafork_rest = metafork_half_bits & 0x7fffu;
    if (metafork_rest >= 0x7c00u) return metafork_float_of(metafork_sign | 0x7f800000u | metafork_rest << 13);
    if (metafork_rest >= 0x400u) return metafork_float_of(metafork_sign | ((metafork_rest << 13) + 0x38000000u));
    return metafork_float_of(metafork_sign | metafork_bits_of((float)metafork_rest * 5.9604644775390625e-8f));
#endif
}

METAFORK_ANYWHERE unsigned short metafork_to_half(float metafork_value) {
#if defined(__CUDA_ARCH__)
    unsigned short metafork_half_bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(metafork_half_bits) : "f"(metafork_value));
    return metafork_half_bits;
#else
    const unsigned int metafork_bits = metafork_bits_of(metafork_value);
    const unsigned int metafork_sign = metafork_bits >> 16 & 0x8000u, metafork_rest = metafork_bits & 0x7fffffffu;
    if (metafork_rest > 0x7f800000u) return 0x7fff;
    if (metafork_rest >= 0x477ff000u) return (unsigned short)(metafork_sign | 0x7c00u);
    if (metafork_rest < 0x38800000u) /* the sum is rounded as the smallest numbers are */
        return (unsigned short)(metafork_sign | (metafork_bits_of(metafork_float_of(metafork_rest) + 0.5f) - 0x3f000000u));
    return (unsigned short)(metafork_sign | ((metafork_rest + 0xfffu + (metafork_rest >> 13 & 1u) - 0x38000000u) >> 13));
#endif
}

METAFORK_ANYWHERE float metafork_from_bfloat16(unsigned short metafork_bits) {
    return metafork_float_of((unsigned int)metafork_bits << 16);
}

METAFORK_ANYWHERE unsigned short metafork_to_bfloat16(float metafork_value) {
    const unsigned int metafork_bits = metafork_bits_of(metafork_value);
    if ((metafork_bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return (unsigned short)((metafork_bits + 0x7fffu + (metafork_bits >> 16 & 1u)) >> 16);
}

#if !defined(__cplusplus)
#if defined(__FLT16_MAX__)
typedef _Float16 metafork_half;
#else
typedef struct {
    unsigned short metafork_bits;
} metafork_half;
#endif
#if defined(__BFLT16_MAX__)
typedef __bf16 metafork_bfloat16;
#else
typedef struct {
    unsigned short metafork_bits;
} metafork_bfloat16;
#endif
#endif

#endif
