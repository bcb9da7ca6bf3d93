"""A kernel in CUDA: a product of matrices with tiles in shared memory."""

MATMUL = """
void mm(int n, int B, const float *a, const float *b, float *c)
{
  extern float ta[B * B];
  extern double tb[B * B];
  float kept[2];
  int v = threadIdx.y, u = threadIdx.x;
  kept[0] = 0.0f;
  for (int k = 0; k < n / B; ++k) {
    ta[v * B + u] = a[(blockIdx.y * B + v) * n + k * B + u];
    tb[v * B + u] = b[(k * B + v) * n + blockIdx.x * B + u];
    __syncthreads();
    for (int z = 0; z < B; ++z) kept[0] += ta[v * B + z] * (float)tb[z * B + u];
    __syncthreads();
  }
  c[(blockIdx.y * blockDim.y + v) * n + blockIdx.x * blockDim.x + u] = kept[0];
}
"""
