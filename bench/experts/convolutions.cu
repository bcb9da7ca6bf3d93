// Convolutions with 3 x 3 weights; a thread computes 4 columns, of 8 rows or of 8 channels.
#include <cuda_runtime.h>

namespace {

constexpr int MOST_CHANNELS = 32;

struct Six {
    float v[6];
};

// Six neighbours of a row; rows begin at multiples of 8 bytes.
__device__ Six six(const float *from) {
    const float2 p = *(const float2 *)from, q = *(const float2 *)(from + 2), r = *(const float2 *)(from + 4);
    return {{p.x, p.y, q.x, q.y, r.x, r.y}};
}

// One image, or channels with weights of their own.
template <bool CHANNELS>
__global__ void image3x3(int h, int w, const float *__restrict__ image, const float *__restrict__ weight, float *__restrict__ out) {
    const int x = (blockIdx.x * 32 + threadIdx.x) * 4, y = (blockIdx.y * 4 + threadIdx.y) * 8, pitch = w + 2;
    if (CHANNELS) image += blockIdx.z * (h + 2) * pitch, out += blockIdx.z * h * w, weight += blockIdx.z * 9;
    image += y * pitch + x, out += y * w + x;
    float by[9];
#pragma unroll
    for (int k = 0; k < 9; k++) by[k] = weight[k];
    Six row[3];
    row[0] = six(image), row[1] = six(image + pitch);
#pragma unroll
    for (int k = 0; k < 8; k++) {
        row[(k + 2) % 3] = six(image + (k + 2) * pitch);
        float sum[4] = {};
#pragma unroll
        for (int dy = 0; dy < 3; dy++)
#pragma unroll
            for (int dx = 0; dx < 3; dx++)
#pragma unroll
                for (int q = 0; q < 4; q++) sum[q] += by[3 * dy + dx] * row[(k + dy) % 3].v[q + dx];
        *(float4 *)(out + k * w) = make_float4(sum[0], sum[1], sum[2], sum[3]);
    }
}

__global__ void channels3x3(int channels, int h, int w, const float *__restrict__ in, const float *__restrict__ weight, float *__restrict__ out) {
    __shared__ __align__(16) float by[MOST_CHANNELS * 9][8];
    const int first = blockIdx.z * 8, taps = channels * 9, pitch = w + 2;
    for (int k = threadIdx.y * 16 + threadIdx.x; k < 8 * taps; k += 128) by[k % taps][k / taps] = weight[first * taps + k];
    __syncthreads();
    const int x = (blockIdx.x * 16 + threadIdx.x) * 4, y = blockIdx.y * 8 + threadIdx.y;
    in += y * pitch + x;
    float sum[8][4] = {};
    for (int c = 0; c < channels; c++, in += (h + 2) * pitch)
#pragma unroll
        for (int dy = 0; dy < 3; dy++) {
            const Six row = six(in + dy * pitch);
#pragma unroll
            for (int dx = 0; dx < 3; dx++) {
                const float4 p = *(const float4 *)&by[c * 9 + dy * 3 + dx][0], q = *(const float4 *)&by[c * 9 + dy * 3 + dx][4];
                const float each[8] = {p.x, p.y, p.z, p.w, q.x, q.y, q.z, q.w};
#pragma unroll
                for (int f = 0; f < 8; f++)
#pragma unroll
                    for (int k = 0; k < 4; k++) sum[f][k] += each[f] * row.v[k + dx];
            }
        }
#pragma unroll
    for (int f = 0; f < 8; f++) *(float4 *)(out + ((first + f) * h + y) * w + x) = make_float4(sum[f][0], sum[f][1], sum[f][2], sum[f][3]);
}

// A bilateral filter of 5 x 5 points; a thread computes 4 columns of 2 rows.
__global__ void bilateral(int w, float falloff, const float *__restrict__ space, const float *__restrict__ in, float *__restrict__ out) {
    const int x = (blockIdx.x * 32 + threadIdx.x) * 4, y = (blockIdx.y * 4 + threadIdx.y) * 2, pitch = w + 4;
    in += y * pitch + x, out += y * w + x;
    float v[6][8];
#pragma unroll
    for (int r = 0; r < 6; r++) {
        *(float4 *)v[r] = *(const float4 *)(in + r * pitch);
        *(float4 *)(v[r] + 4) = *(const float4 *)(in + r * pitch + 4);
    }
    float sum[2][4] = {}, total[2][4] = {};
#pragma unroll
    for (int p = 0; p < 5; p++)
#pragma unroll
        for (int q = 0; q < 5; q++) {
            const float near = space[5 * p + q];
#pragma unroll
            for (int r = 0; r < 2; r++)
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    const float value = v[r + p][k + q], apart = value - v[r + 2][k + 2], weight = near * expf(falloff * apart * apart);
                    sum[r][k] += weight * value, total[r][k] += weight;
                }
        }
#pragma unroll
    for (int r = 0; r < 2; r++)
        *(float4 *)(out + r * w) = make_float4(sum[r][0] / total[r][0], sum[r][1] / total[r][1], sum[r][2] / total[r][2], sum[r][3] / total[r][3]);
}

}  // namespace

extern "C" void expert_conv3x3(int h, int w, const float *image, const float *weight, float *out) {
    image3x3<false><<<dim3(w / 128, h / 32), dim3(32, 4)>>>(h, w, image, weight, out);
}
extern "C" void expert_depthwise(int C, int h, int w, const float *in, const float *weight, float *out) {
    image3x3<true><<<dim3(w / 128, h / 32, C), dim3(32, 4)>>>(h, w, in, weight, out);
}
extern "C" void expert_bilateral(int h, int w, float falloff, const float *space, const float *in, float *out) {
    bilateral<<<dim3(w / 128, h / 8), dim3(32, 4)>>>(w, falloff, space, in, out);
}
extern "C" void expert_conv_channels(int C, int F, int h, int w, const float *in, const float *weight, float *out) {
    channels3x3<<<dim3(w / 64, h / 8, F / 8), dim3(16, 8)>>>(C, h, w, in, weight, out);
}
