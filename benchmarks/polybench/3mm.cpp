// G = (A * B) * (C * D)
void kernel_3mm(float A[180][200], float B[200][190], float C[190][220], float D[220][210], float G[180][210]) {
  float E[180][190];
  float F[190][210];
  for (int i = 0; i < 180; i++)
    for (int j = 0; j < 190; j++) {
      E[i][j] = 0.0f;
      for (int k = 0; k < 200; k++) E[i][j] += A[i][k] * B[k][j];
    }
  for (int i = 0; i < 190; i++)
    for (int j = 0; j < 210; j++) {
      F[i][j] = 0.0f;
      for (int k = 0; k < 220; k++) F[i][j] += C[i][k] * D[k][j];
    }
  for (int i = 0; i < 180; i++)
    for (int j = 0; j < 210; j++) {
      G[i][j] = 0.0f;
      for (int k = 0; k < 190; k++) G[i][j] += E[i][k] * F[k][j];
    }
}
