// y = alpha * A x + beta * B x
void kernel_gesummv(float alpha, float beta, float A[250][250], float B[250][250], float x[250], float y[250]) {
  float tmp[250];
  for (int i = 0; i < 250; i++) {
    tmp[i] = 0.0f;
    y[i] = 0.0f;
    for (int j = 0; j < 250; j++) {
      tmp[i] += A[i][j] * x[j];
      y[i] += B[i][j] * x[j];
    }
    y[i] = alpha * tmp[i] + beta * y[i];
  }
}
