// The lower triangle of C = alpha * (A * B^T + B * A^T) + beta * C
void kernel_syr2k(float alpha, float beta, float A[240][200], float B[240][200], float C[240][240]) {
  for (int i = 0; i < 240; i++) {
    for (int j = 0; j < 240; j++)
      if (j <= i) C[i][j] *= beta;
    for (int k = 0; k < 200; k++)
      for (int j = 0; j < 240; j++)
        if (j <= i) C[i][j] += A[j][k] * alpha * B[i][k] + B[j][k] * alpha * A[i][k];
  }
}
