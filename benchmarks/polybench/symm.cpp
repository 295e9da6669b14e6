// C = alpha * A * B + beta * C, of the symmetric A the lower triangle alone is read
void kernel_symm(float alpha, float beta, float A[200][200], float B[200][240], float C[200][240]) {
  float sums[200][240];
  for (int i = 0; i < 200; i++)
    for (int j = 0; j < 240; j++) {
      sums[i][j] = 0.0f;
      for (int k = 0; k < 200; k++) {
        if (k < i) {
          C[k][j] += alpha * B[i][j] * A[i][k];
          sums[i][j] += B[k][j] * A[i][k];
        }
      }
      C[i][j] = beta * C[i][j] + alpha * B[i][j] * A[i][i] + alpha * sums[i][j];
    }
}
