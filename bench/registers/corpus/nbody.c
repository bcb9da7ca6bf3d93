void nbody_plain(int n, int B, float soft, const float *px, const float *py, const float *pz, const float *m, float *ax, float *ay, float *az) {
  int i = blockIdx.x * B + threadIdx.x;
  if (i < n) {
    float x = px[i], y = py[i], z = pz[i], sx = 0.0f, sy = 0.0f, sz = 0.0f;
    for (int j = 0; j < n; ++j) {
      float dx = px[j] - x, dy = py[j] - y, dz = pz[j] - z;
      float r2 = dx * dx + dy * dy + dz * dz + soft;
      float f = m[j] / (r2 * sqrtf(r2));
      sx += f * dx;
      sy += f * dy;
      sz += f * dz;
    }
    ax[i] = sx;
    ay[i] = sy;
    az[i] = sz;
  }
}
void nbody_cached(int n, int B, float soft, const float *px, const float *py, const float *pz, const float *m, float *ax, float *ay, float *az) {
  extern float qx[B];
  extern float qy[B];
  extern float qz[B];
  extern float qm[B];
  int u = threadIdx.x;
  int i = blockIdx.x * B + u;
  float x = px[i], y = py[i], z = pz[i], sx = 0.0f, sy = 0.0f, sz = 0.0f;
  for (int k = 0; k < n / B; ++k) {
    qx[u] = px[k * B + u];
    qy[u] = py[k * B + u];
    qz[u] = pz[k * B + u];
    qm[u] = m[k * B + u];
    __syncthreads();
    for (int j = 0; j < B; ++j) {
      float dx = qx[j] - x, dy = qy[j] - y, dz = qz[j] - z;
      float r2 = dx * dx + dy * dy + dz * dz + soft;
      float f = qm[j] / (r2 * sqrtf(r2));
      sx += f * dx;
      sy += f * dy;
      sz += f * dz;
    }
    __syncthreads();
  }
  ax[i] = sx;
  ay[i] = sy;
  az[i] = sz;
}
