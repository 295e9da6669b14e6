// y = A^T (A x)
void kernel_atax(float A[390][410], float x[410], float y[410]) {
  float tmp[390];
  for (int j = 0; j < 410; j++) y[j] = 0.0f;
  for (int i = 0; i < 390; i++) {
    tmp[i] = 0.0f;
    for (int j = 0; j < 410; j++) tmp[i] += A[i][j] * x[j];
    for (int j = 0; j < 410; j++) y[j] += A[i][j] * tmp[i];
  }
}
