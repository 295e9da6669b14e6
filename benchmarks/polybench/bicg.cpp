// s = A^T r, q = A p
void kernel_bicg(float A[410][390], float s[390], float q[410], float p[390], float r[410]) {
  for (int j = 0; j < 390; j++) s[j] = 0.0f;
  for (int i = 0; i < 410; i++) {
    q[i] = 0.0f;
    for (int j = 0; j < 390; j++) {
      s[j] += r[i] * A[i][j];
      q[i] += A[i][j] * p[j];
    }
  }
}
