// A hundred times the mean of a point and its four neighbours, to and fro.
void kernel_jacobi_2d(float A[250][250], float B[250][250]) {
  for (int t = 0; t < 100; t++) {
    for (int i = 1; i < 249; i++)
      for (int j = 1; j < 249; j++)
        B[i][j] = 0.2f * (A[i][j] + A[i][j - 1] + A[i][j + 1] + A[i + 1][j] + A[i - 1][j]);
    for (int i = 1; i < 249; i++)
      for (int j = 1; j < 249; j++)
        A[i][j] = 0.2f * (B[i][j] + B[i][j - 1] + B[i][j + 1] + B[i + 1][j] + B[i - 1][j]);
  }
}
